package core

// The states of a hold, from its Acquire to its end.
//
// Rules for this file: every transition that can happen stands in the table, once; a hold changes state
// by move alone; move panics on what the table does not have. docs/design.md draws its
// diagram from this table, and a test fails if the two differ. The simulation fails if it
// never saw one of the transitions happen.

type state int

const (
	asking  state = iota // an attempt is in flight
	behind               // another acquire of this client waits before it
	queued               // refused, with a place in the queue
	raising              // a quorum granted it, with different fencing tokens: agreeing on the largest
	pausing              // refused; the next attempt waits for its time
	held                 // ours until the deadline
	lost                 // was ours; waits to be released by its owner
	ended
	stateCount
)

var stateNames = [stateCount]string{"asking", "behind", "queued", "raising", "pausing", "held", "lost", "ended"}

type trigger int

const (
	granted   trigger = iota // a quorum granted it, with one fencing token
	split                    // a quorum granted it, with several
	refused                  // this attempt can't win; another may
	preceded                 // another acquire of this client waits for the same lock
	placed                   // it can't win now, but waits for its turn
	yielded                  // this client has just released it, and others wait
	displaced                // its place is gone
	promoted                 // the one before it gave up between two attempts
	inherited                // the one before it gave up and left it the place
	due                      // time for the next attempt
	failed                   // the request ends without a lock
	expired                  // the deadline passed
	taken                    // a quorum says that it is not ours
	closed                   // the client closed
	released                 // its owner gave it back
	triggerCount
)

var triggerNames = [triggerCount]string{"granted", "split", "refused", "preceded", "placed", "yielded", "displaced", "promoted", "inherited", "due", "failed", "expired", "taken", "closed", "released"}

type transition struct {
	from state
	on   trigger
	to   state
}

var transitions = []transition{
	{asking, granted, held},
	{asking, split, raising},
	{asking, refused, pausing},
	{asking, preceded, behind},
	{asking, placed, queued},
	{asking, yielded, pausing},
	{asking, failed, ended},
	{behind, due, asking},
	{behind, inherited, queued},
	{behind, promoted, pausing},
	{behind, failed, ended},
	{queued, granted, held},
	{queued, displaced, asking},
	{queued, refused, pausing},
	{queued, failed, ended},
	{raising, granted, held},
	{raising, refused, pausing},
	{raising, failed, ended},
	{pausing, due, asking},
	{pausing, failed, ended},
	{held, expired, lost},
	{held, taken, lost},
	{held, closed, lost},
	{held, released, ended},
	{lost, released, ended},
}

var nextState = func() (table [stateCount][triggerCount]state) {
	for from := range table {
		for on := range table[from] {
			table[from][on] = stateCount
		}
	}
	for _, t := range transitions {
		table[t.from][t.on] = t.to
	}
	return table
}()

// move changes the state of a hold.
func (m *Machine) move(h *hold, on trigger) {
	from, to := h.state, nextState[h.state][on]
	if to == stateCount {
		panic("core: a hold that is " + stateNames[from] + " can't be " + triggerNames[on])
	}
	h.state = to
	if m.config.OnTransition != nil {
		m.config.OnTransition(transition{from, on, to}.named())
	}
}

// Transition is a row of the table, by names.
type Transition struct{ From, On, To string }

func (t transition) named() Transition {
	return Transition{stateNames[t.from], triggerNames[t.on], stateNames[t.to]}
}

// Transitions lists the table, for tests and diagrams.
func Transitions() []Transition {
	rows := make([]Transition, len(transitions))
	for i, t := range transitions {
		rows[i] = t.named()
	}
	return rows
}

// waiting tells whether the Acquire has no outcome yet.
func (s state) waiting() bool {
	return s == asking || s == behind || s == queued || s == raising || s == pausing
}
