package sim

import (
	"slices"
	"strconv"
	"strings"

	"github.com/libredlock/libredlock/core"
	"github.com/libredlock/libredlock/core/script"
)

// Server is one Redis, as far as the mutex's scripts can tell. A test runs the
// same calls on it and on real servers and compares the replies.
type Server struct {
	now     func() int64 // its clock, in microseconds since 1970
	keys    map[string]entry
	scripts map[string]*script.Script // those that it was sent, by their SHA

	breakNext bool // the next acquire that succeeds fails behind its first write
}

// entry is what stands at a key.
type entry struct {
	kind    string // as TYPE says it
	text    string // if it is a string
	expires int64  // in milliseconds since 1970; 0: never
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

// Put sets a key to a value of any kind, ttl in milliseconds (0: for ever). The text of what is no string does not matter.
func (s *Server) Put(key, kind, text string, ttl int64) {
	e := entry{kind: kind, text: text}
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
	if e, ok := s.look(key); ok && s.left(key) < ms {
		e.expires = s.now()/1000 + ms
		s.keys[key] = e
	}
}

// number is what GET and tonumber make of a counter: 0 if there is none.
func (s *Server) number(key string) (int64, error) {
	e, ok := s.look(key)
	if ok && e.kind != "string" {
		return 0, wrongType
	}
	n, _ := strconv.ParseInt(strings.TrimSpace(e.text), 10, 64)
	return n, nil
}

func (s *Server) run(called *script.Script, keys, argv []string) ([]core.Value, error) {
	switch called {
	case script.MutexAcquire:
		return s.acquire(keys, argv)
	case script.MutexRegrant:
		return s.regrant(keys, argv)
	}
	holder, held := s.look(keys[0])
	if called == script.MutexUndo {
		if !held || holder.kind != "string" || holder.text != argv[0] {
			return integers(script.Gone), nil
		}
		s.Delete(keys[0])
		return integers(script.Yes), nil
	}
	switch {
	case held && holder.kind != "string":
		return []core.Value{{Int: script.WrongKind}, {Str: holder.kind, IsString: true}}, nil
	case called == script.MutexInspect:
		return s.inspect(keys, holder, held)
	case !held:
		return integers(script.Gone), nil
	case called == script.MutexForce:
		if secretDigest(holder.text) != argv[0] {
			return integers(script.No), nil
		}
		s.Delete(keys[0])
		return integers(script.Yes), nil
	case holder.text != argv[0]:
		return integers(script.No), nil
	case called == script.MutexRelease:
		s.Delete(keys[0])
	case called == script.MutexRenew:
		s.lengthen(keys[0], number(argv[1]))
		if len(keys) > 1 {
			s.lengthen(keys[1], number(argv[2]))
		}
	case called == script.MutexRaise:
		last, err := s.number(keys[1])
		if err != nil {
			return nil, err
		}
		if fence := number(argv[1]); last < fence {
			s.Put(keys[1], "string", argv[1], max(number(argv[2]), s.left(keys[1])))
		}
	default:
		return nil, ReplyError("ERR " + called.Name + " is not simulated")
	}
	return integers(script.Yes), nil
}

func (s *Server) acquire(keys, argv []string) ([]core.Value, error) {
	token, ttl := argv[0], number(argv[1])
	if e, ok := s.look(keys[0]); ok {
		if e.kind != "string" {
			return []core.Value{{Int: script.WrongKind}, {Str: e.kind, IsString: true}}, nil
		}
		if e.text != token && !slices.Contains(argv[4:], e.text) {
			return integers(script.No, s.left(keys[0])), nil
		}
	}
	s.Put(keys[0], "string", token, ttl)
	if s.breakNext {
		s.breakNext = false
		return nil, ReplyError("ERR out of luck behind the first write")
	}
	if len(keys) < 2 {
		return integers(script.Yes, 0), nil
	}
	proposed := s.now()
	if argv[3] != "" {
		const most = 60 * 1000000
		proposed = min(max(number(argv[3]), proposed-most), proposed+most)
	}
	last, err := s.number(keys[1])
	if err != nil {
		return nil, err
	}
	fence := max(last+1, proposed)
	s.Put(keys[1], "string", strconv.FormatInt(fence, 10), max(number(argv[2]), s.left(keys[1])))
	return integers(script.Yes, fence), nil
}

func (s *Server) regrant(keys, argv []string) ([]core.Value, error) {
	switch e, ok := s.look(keys[0]); {
	case !ok:
		s.Put(keys[0], "string", argv[0], number(argv[1]))
	case e.kind != "string":
		return []core.Value{{Int: script.WrongKind}, {Str: e.kind, IsString: true}}, nil
	case e.text != argv[0]:
		return integers(script.No, s.left(keys[0])), nil
	default:
		s.lengthen(keys[0], number(argv[1]))
	}
	if len(keys) < 2 {
		return integers(script.Yes, 0), nil
	}
	last, err := s.number(keys[1])
	if err != nil {
		return nil, err
	}
	fence := max(last, number(argv[2]))
	s.Put(keys[1], "string", strconv.FormatInt(fence, 10), max(number(argv[3]), s.left(keys[1])))
	return integers(script.Yes, fence), nil
}

func (s *Server) inspect(keys []string, holder entry, held bool) ([]core.Value, error) {
	last, err := s.number(keys[1])
	if err != nil {
		return nil, err
	}
	if !held {
		return integers(script.Gone, last), nil
	}
	return []core.Value{{Int: script.Yes}, {Str: holder.text, IsString: true}, {Int: s.left(keys[0])}, {Int: last}}, nil
}

// secretDigest is what ForceRelease names a holder by: of the whole value, unless it is one of libredlock's tokens.
func secretDigest(value string) string {
	const start, end = len("rl0:"), len("rl0:") + 22
	ours := strings.HasPrefix(value, "rl0:") || strings.HasPrefix(value, "rl1:")
	if ours && len(value) > end && value[end] == ':' {
		value = value[start:end]
	}
	return script.Digest(value)
}

// number reads an argument that the machine wrote.
func number(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		panic("sim: an argument is not an integer: " + text)
	}
	return n
}

func integers(values ...int64) []core.Value {
	reply := make([]core.Value, len(values))
	for i, v := range values {
		reply[i].Int = v
	}
	return reply
}
