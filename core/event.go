package core

// OpID names a request; the driver chooses it, non-zero and never twice. The id
// of an acquire that ended in OK also names the hold that it made.
type OpID uint64

// CallID names a call to a node.
type CallID uint64

// Kind is a kind of lock.
type Kind int

const (
	Mutex Kind = iota
	Reentrant
	ReadLock
	WriteLock
	Semaphore
	Multi
)

// Toggle is an option that may be left to the default.
type Toggle int

const (
	Default Toggle = iota
	On
	Off
)

// Event is one thing that happened. Requests come from the caller, each answered by
// exactly one Outcome; the rest comes from the driver.
type Event interface{ isEvent() }

// Request is an event that is answered by exactly one Outcome.
type Request interface {
	Event
	SetOp(OpID) // names the request; to be called once, before Step
}

type (
	// Acquire asks for a lock.
	Acquire struct {
		Op        OpID
		Kind      Kind
		Name      string
		Permits   int      // of a semaphore: how many may hold it, 1 to MaxPermits
		TTL       Duration // 0: DefaultTTL
		Wait      Duration // 0 tries once; Forever waits without limit
		Fencing   Toggle   // default on
		AutoRenew Toggle   // default on: the machine extends the lease until the release
		Queue     Toggle   // default on: who waits is told of a release, with one node in the order of arrival; off: it polls, and tells nobody
		Retry     Retry    // how it polls
		MaxHold   Duration // since the grant: then it is lost, renewed or not; 0: no limit
		Metadata  string   // shown by Inspect beside host, pid and language
		Seed      [16]byte // from a CSPRNG, fresh for each Acquire: its tokens and its jitter derive from it
		Wall      int64    // the wall clock in microseconds since 1970: proposes fencing tokens on a quorum
	}
	// Retry is how an acquire polls whose Queue is Off.
	Retry struct {
		Delay    Duration // between two attempts; 0: 50 ms
		Jitter   Duration // up to this is added, at random; 0: as long as the delay
		MaxTries int      // then the last refusal is the outcome; 0: as many as Wait allows
	}
	// Renew extends a hold to ttl from now; a ttl of 0 means the one it was acquired or last renewed with.
	Renew struct {
		Op   OpID
		Hold OpID
		TTL  Duration
	}
	// Release gives a hold back, whatever its outcome: afterwards the hold is forgotten.
	Release struct {
		Op   OpID
		Hold OpID
	}
	// Inspect reads who holds a name.
	Inspect struct {
		Op   OpID
		Kind Kind
		Name string
	}
	// ForceRelease takes a lock away from the holder whose digest Inspect showed.
	ForceRelease struct {
		Op     OpID
		Kind   Kind
		Name   string
		Digest string
	}
	// Close ends every wait, releases every hold and refuses what comes later. Its
	// outcome comes when the releases were answered, or when the node timeout passed.
	Close struct {
		Op OpID
	}
	// Cancel ends an acquire or renew that has no outcome yet with CANCELED. It
	// has no outcome of its own and is ignored for every other request.
	Cancel struct {
		Op OpID
	}
)

// Fault is how a call failed.
type Fault int

const (
	NoFault Fault = iota
	// Refused: the node certainly did not execute the call (connection refused, never written).
	Refused
	// Unknown: the node may or may not have executed it, now or later (timeout, broken connection).
	Unknown
	// ErrorReply: the node answered with an error; the call is over.
	ErrorReply
)

// Value is one element of a script's reply: an integer, or a string if IsString.
type Value struct {
	Int      int64
	Str      string
	IsString bool
}

// Facts are what a driver reads from a node on each new connection.
type Facts struct {
	Unreadable   bool     // INFO was refused or made no sense; nothing else is set
	Version      string   // "7.0.15"
	RunID        string   // changes with every start of the server
	UptimeS      int64    // seconds since that start
	Replica      bool     // a read-only replica
	Evicts       bool     // maxmemory is set with an evicting policy
	Capabilities []string // of the commands DELEX, DELIFEQ, SPUBLISH and WAITAOF those that it has, in lower case
}

type (
	// Answer ends a call. Reply is set if Fault is NoFault, else Cause says what happened.
	Answer struct {
		Call  CallID
		Reply []Value
		Fault Fault
		Cause string
	}
	// Connected tells of a new connection to a node, before any call's answer that came over it.
	Connected struct {
		Node  int
		Facts Facts
	}
	// Subscribed confirms a subscription, again after each reconnect.
	Subscribed struct {
		Node    int
		Channel string
	}
	// Dropped tells that a subscription's connection broke, or that it was refused; the driver tries again by itself.
	Dropped struct {
		Node    int
		Channel string
		Cause   string
	}
	// Message is a pub/sub message.
	Message struct {
		Node    int
		Channel string
		Payload string
	}
	// Tick tells that it is Effects.Wake or later.
	Tick struct{}
)

func (*Acquire) isEvent()      {}
func (*Renew) isEvent()        {}
func (*Release) isEvent()      {}
func (*Inspect) isEvent()      {}
func (*ForceRelease) isEvent() {}
func (*Close) isEvent()        {}
func (*Cancel) isEvent()       {}
func (*Answer) isEvent()       {}
func (*Connected) isEvent()    {}
func (*Subscribed) isEvent()   {}
func (*Dropped) isEvent()      {}
func (*Message) isEvent()      {}
func (*Tick) isEvent()         {}

func (r *Acquire) SetOp(op OpID)      { r.Op = op }
func (r *Renew) SetOp(op OpID)        { r.Op = op }
func (r *Release) SetOp(op OpID)      { r.Op = op }
func (r *Inspect) SetOp(op OpID)      { r.Op = op }
func (r *ForceRelease) SetOp(op OpID) { r.Op = op }
func (r *Close) SetOp(op OpID)        { r.Op = op }

// Effects are what a Step wants done. The slices are valid until the next Step.
// The order among them does not matter.
type Effects struct {
	Calls         []Call         // send now; each is answered exactly once
	Subscriptions []Subscription // start or end now
	Outcomes      []Outcome      // hand to whoever made the request
	Notices       []Notice       // hand to whoever owns the hold, or watches the client's health
	Wake          Time           // send a Tick then, if nothing else happens before; Never
}

// Call is one command for one node.
type Call struct {
	ID      CallID
	Node    int
	Args    []string // the command and its arguments; not to be changed
	Timeout Duration // answer Unknown (or Refused, if it was never written) when this has passed
}

// Subscription starts (On) or ends listening to a channel of a node.
type Subscription struct {
	Node    int
	Channel string
	On      bool
}

// Outcome answers a request.
type Outcome struct {
	Op     OpID
	Status Status
	// Message and Nodes say what went wrong, unless Status is OK.
	Message string
	Nodes   []NodeCause
	// Of an acquire; Deadline of a renew too.
	Token    string
	Fence    int64 // 0 without fencing
	Slot     int   // of a semaphore: 0 to Permits-1; else 0
	Deadline Time  // when the lease ends, if nothing extends it
	// Of an inspect.
	Inspection *Inspection
}

// Err returns the outcome as an error, nil if it is OK.
func (o *Outcome) Err() *Error {
	if o.Status == OK {
		return nil
	}
	return &Error{Status: o.Status, Message: o.Message, Nodes: o.Nodes}
}

// Inspection is who holds a name.
type Inspection struct {
	Kind    Kind
	Holders []Holder // none if the name is free; several of a semaphore, or if nodes disagree: those on most nodes first, then by slot
	Fence   int64    // the largest fencing token that a node remembers; 0 if none
	// QueueLength is how many clients wait in the queue, and QueueAge how long the first of them has.
	QueueLength int64
	QueueAge    Duration
}

// Holder is one holder of a name.
type Holder struct {
	Who    string   // "host/pid/language/metadata", decoded; "" for a value of another library
	Digest string   // of the random part of the token: what ForceRelease takes
	TTL    Duration // until the key expires, on the node where it lives longest; Forever if it never does
	Nodes  int      // on how many nodes it is the holder
	Slot   int      // of a semaphore
}

// NoticeKind is what a Notice tells.
type NoticeKind int

const (
	// NoticeLost: the hold is ours no longer. Told once, never after its release was asked for.
	NoticeLost NoticeKind = iota
	// NoticeDeadline: the lease of the hold now ends at Deadline.
	NoticeDeadline
	// NoticeHealth: something about a node endangers locks on it.
	NoticeHealth
)

// Notice tells what nobody asked for.
type Notice struct {
	Kind     NoticeKind
	Hold     OpID
	Deadline Time
	Node     int
	Cause    string
}
