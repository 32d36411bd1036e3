package sim

import (
	"slices"
	"strconv"

	"github.com/libredlock/libredlock/core"
	"github.com/libredlock/libredlock/core/script"
)

// Server is one Redis, as far as the mutex's scripts can tell. A test runs the
// same calls on it and on real servers and compares the replies.
type Server struct {
	now     func() int64 // its clock, in microseconds since 1970
	keys    map[string]entry
	scripts map[string]*script.Script // those that it was sent, by their SHA

	// Publish is called with every message that a script publishes, and tells how many hear it; nil: nobody does.
	Publish func(channel, payload string) (heard int64)
	// Listening counts the subscriptions to a channel; nil: there are none.
	Listening func(channel string) int64

	breakNext bool // the next acquire that succeeds fails behind its first write
}

// entry is what stands at a key.
type entry struct {
	kind    string // as TYPE says it
	text    string // if it is a string
	items   []string
	fields  map[string]string
	expires int64 // in milliseconds since 1970; 0: never
}

// ReplyError is an error that the server answered with.
type ReplyError string

func (e ReplyError) Error() string { return string(e) }

const wrongType ReplyError = "WRONGTYPE Operation against a key holding the wrong kind of value"

// NewServer makes an empty one. now is its clock, in microseconds since 1970.
func NewServer(now func() int64) *Server {
	return &Server{now: now, keys: map[string]entry{}, scripts: map[string]*script.Script{}}
}

// Do executes an EVAL or EVALSHA.
func (s *Server) Do(args []string) ([]core.Value, error) {
	if len(args) < 3 {
		return nil, ReplyError("ERR wrong number of arguments")
	}
	var called *script.Script
	switch args[0] {
	case "EVALSHA":
		if called = s.scripts[args[1]]; called == nil {
			return nil, ReplyError("NOSCRIPT No matching script. Please use EVAL.")
		}
	case "EVAL":
		i := slices.IndexFunc(script.All, func(known *script.Script) bool { return known.Source == args[1] })
		if i < 0 {
			return nil, ReplyError("ERR this server knows libredlock's scripts only")
		}
		called = script.All[i]
		s.scripts[called.SHA] = called
	default:
		return nil, ReplyError("ERR unknown command '" + args[0] + "'")
	}
	count, err := strconv.Atoi(args[2])
	if err != nil || count < 0 || count > len(args)-3 {
		return nil, ReplyError("ERR Number of keys can't be greater than number of args")
	}
	return s.run(called, args[3:3+count], args[3+count:])
}

// ForgetScripts does what SCRIPT FLUSH does.
func (s *Server) ForgetScripts() { clear(s.scripts) }

// Put sets a key to a value of any kind, ttl in milliseconds (0: for ever). A list has the text as its
// one item; that of other kinds but strings does not matter.
func (s *Server) Put(key, kind, text string, ttl int64) {
	e := entry{kind: kind, text: text}
	if kind == "list" {
		e.items = []string{text}
	}
	if ttl > 0 {
		e.expires = s.now()/1000 + ttl
	}
	s.keys[key] = e
}

// Delete removes a key.
func (s *Server) Delete(key string) { delete(s.keys, key) }

// Keys lists all that have not expired, sorted.
func (s *Server) Keys() (keys []string) {
	for key := range s.keys {
		if _, ok := s.look(key); ok {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// look finds what stands at a key. A key lives through its last millisecond, as on a real server.
func (s *Server) look(key string) (entry, bool) {
	e, ok := s.keys[key]
	if ok && e.expires != 0 && s.now()/1000 > e.expires {
		delete(s.keys, key)
		return entry{}, false
	}
	return e, ok
}

// left is PTTL.
func (s *Server) left(key string) int64 {
	switch e, ok := s.look(key); {
	case !ok:
		return -2
	case e.expires == 0:
		return -1
	default:
		return e.expires - s.now()/1000
	}
}

func (s *Server) lengthen(key string, ms int64) {
	if s.left(key) < ms {
		s.expire(key, ms)
	}
}

// expire is PEXPIRE.
func (s *Server) expire(key string, ms int64) {
	if e, ok := s.look(key); ok {
		e.expires = s.now()/1000 + ms
		s.keys[key] = e
	}
}

// get is what a command for this kind of key finds there. One of another kind ends the script.
func (s *Server) get(key, kind string) entry {
	e, ok := s.look(key)
	if ok && e.kind != kind {
		panic(wrongType)
	}
	e.kind = kind
	return e
}

// put writes a list or a hash back: one that is empty is no more.
func (s *Server) put(key string, e entry) {
	if s.keys[key] = e; len(e.items)+len(e.fields) == 0 {
		s.Delete(key)
	}
}

// number reads an argument that the machine wrote.
func number(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		panic("sim: an argument is not an integer: " + text)
	}
	return n
}

func wrongKind(e entry) []core.Value {
	return []core.Value{{Int: script.WrongKind}, {Str: e.kind, IsString: true}}
}

func integers(values ...int64) []core.Value {
	reply := make([]core.Value, len(values))
	for i, v := range values {
		reply[i].Int = v
	}
	return reply
}
