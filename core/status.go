package core

import "strconv"

// Status says how a request ended, chosen by what the caller can do about it.
// The numbers are part of every ABI and never change.
type Status int

const (
	OK          Status = 0  // done
	Held        Status = 1  // someone else holds it (try): later
	Timeout     Status = 2  // the wait limit passed: later
	Lost        Status = 3  // it was ours and is no longer: stop the work
	Unavailable Status = 4  // too few nodes answered; cleanup was sent: back off
	Canceled    Status = 5  // the caller gave up
	Invalid     Status = 6  // bad argument, or illegal in this state
	NotHeld     Status = 7  // release or renew of what this owner never held, or released already
	WrongKind   Status = 8  // the key holds another kind of value
	Unsupported Status = 9  // the server, or this version, can't do it
	Closed      Status = 10 // client closed, or the process forked: reopen
	Internal    Status = 11 // a bug in libredlock: report it
)

var statusNames = [...]string{
	"OK", "HELD", "TIMEOUT", "LOST", "UNAVAILABLE", "CANCELED",
	"INVALID", "NOT_HELD", "WRONG_KIND", "UNSUPPORTED", "CLOSED", "INTERNAL",
}

// String returns the status's name as every language spells it ("NOT_HELD").
func (s Status) String() string {
	if s >= 0 && int(s) < len(statusNames) {
		return statusNames[s]
	}
	return "STATUS(" + strconv.Itoa(int(s)) + ")"
}

// NodeCause is why one node did not do its part.
type NodeCause struct {
	Node    int    // index into the configured nodes
	Address string // "host:port" or a socket's path; never a password
	Cause   string // "timeout after 50 ms"
}

func (c NodeCause) String() string {
	return "node " + strconv.Itoa(c.Node) + " (" + c.Address + "): " + c.Cause
}

// Error is a request that did not end in OK.
type Error struct {
	Status  Status
	Message string // one sentence without the status's name
	Nodes   []NodeCause
}

// Error returns "STATUS: message", then one line a node that failed.
func (e *Error) Error() string {
	text := e.Status.String() + ": " + e.Message
	for _, node := range e.Nodes {
		text += "\n" + node.String()
	}
	return text
}

// line is the error without its status, on one line.
func (e *Error) line() string {
	text := e.Message
	for i, node := range e.Nodes {
		separator := ", "
		if i == 0 {
			separator = ": "
		}
		text += separator + node.String()
	}
	return text
}

func errorf(status Status, message string) *Error {
	return &Error{Status: status, Message: message}
}
