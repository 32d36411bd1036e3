package testredis

import (
	"bufio"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Fault is what a Proxy does to one command.
type Fault int

const (
	// Pass forwards the command and its reply.
	Pass Fault = iota
	// CutBefore breaks the connection instead of forwarding the command.
	CutBefore
	// CutAfter forwards the command and breaks the connection when the server
	// has executed it, instead of handing its reply on.
	CutAfter
	// Stall forwards the command, but neither its reply nor anything after it on this connection.
	Stall
	// Swallow neither forwards the command nor anything after it on this connection, which stays open.
	Swallow
)

// Proxy stands between clients and a server and does to every command what its hook says.
type Proxy struct {
	URL string

	server string
	hook   atomic.Pointer[func(args []string) Fault]
	delay  atomic.Int64
}

// StartProxy starts a proxy that forwards everything.
func StartProxy(t testing.TB, server *Server) *Proxy {
	t.Helper()
	p := &Proxy{server: server.Addr}
	p.URL = serve(t, p.handle)
	return p
}

// Dying starts a proxy that does fault to the nth EVALSHA (counted from 1, over all connections).
func Dying(t testing.TB, server *Server, fault Fault, n int64) *Proxy {
	t.Helper()
	p := StartProxy(t, server)
	var count atomic.Int64
	p.Hook(func(args []string) Fault {
		if strings.EqualFold(args[0], "EVALSHA") && count.Add(1) == n {
			return fault
		}
		return Pass
	})
	return p
}

// Hook sets what is called with every command from now on; it may be called at the same time for
// several connections. nil forwards everything.
func (p *Proxy) Hook(hook func(args []string) Fault) {
	if hook == nil {
		p.hook.Store(nil)
		return
	}
	p.hook.Store(&hook)
}

// Delay holds every command and every reply back for d from now on.
func (p *Proxy) Delay(d time.Duration) { p.delay.Store(int64(d)) }

// arrival is a frame on its way through the proxy.
type arrival struct {
	frame *frame
	due   time.Time
}

// arrivals reads frames until the connection breaks, and gives each a time to go on, so that
// a delay adds to the latency of a pipeline but takes nothing from its throughput.
func (p *Proxy) arrivals(conn net.Conn, gone <-chan struct{}) <-chan arrival {
	frames := make(chan arrival, 1024)
	go func() {
		defer close(frames)
		for reader := bufio.NewReader(conn); ; {
			f, err := readFrame(reader)
			if err != nil {
				return
			}
			select {
			case frames <- arrival{f, time.Now().Add(time.Duration(p.delay.Load()))}:
			case <-gone:
				return
			}
		}
	}()
	return frames
}

func (p *Proxy) decide(args []string) Fault {
	if hook := p.hook.Load(); hook != nil && len(args) > 0 {
		return (*hook)(args)
	}
	return Pass
}

// handle forwards one connection until either side breaks it.
func (p *Proxy) handle(client net.Conn) {
	server, err := net.Dial("tcp", p.server)
	if err != nil {
		return
	}
	link := &link{client: client, server: server, gone: make(chan struct{})}
	var both sync.WaitGroup
	both.Go(func() { p.forwardCommands(link) })
	both.Go(func() { p.forwardReplies(link) })
	both.Wait()
}

// link is a client's connection and the one to the server that belongs to it.
type link struct {
	client, server net.Conn
	cutting        sync.Once
	gone           chan struct{} // closed when the link is cut

	mu     sync.Mutex
	faults []Fault // of the commands that have no reply yet, in order
}

func (l *link) cut() {
	l.cutting.Do(func() {
		close(l.gone)
		l.client.Close()
		l.server.Close()
	})
}

// answered takes the fault of the oldest command that has no reply yet. A RESP2 message of a
// subscription looks like a reply, but belongs to no command.
func (l *link) answered() Fault {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.faults) == 0 {
		return Pass
	}
	fault := l.faults[0]
	l.faults = l.faults[1:]
	return fault
}

func (p *Proxy) forwardCommands(l *link) {
	defer l.cut()
	swallowing := false
	for command := range p.arrivals(l.client, l.gone) {
		time.Sleep(time.Until(command.due))
		if swallowing {
			continue
		}
		fault := p.decide(command.frame.args)
		if fault == CutBefore {
			return
		}
		if swallowing = fault == Swallow; swallowing {
			continue
		}
		l.mu.Lock()
		l.faults = append(l.faults, fault)
		l.mu.Unlock()
		if _, err := l.server.Write(command.frame.raw); err != nil {
			return
		}
	}
}

func (p *Proxy) forwardReplies(l *link) {
	defer l.cut()
	stalled := false
	for reply := range p.arrivals(l.server, l.gone) {
		fault := Pass
		if !reply.frame.push() {
			fault = l.answered()
		}
		if fault == CutAfter {
			return
		}
		if stalled = stalled || fault == Stall; stalled {
			continue
		}
		time.Sleep(time.Until(reply.due))
		if _, err := l.client.Write(reply.frame.raw); err != nil {
			return
		}
	}
}
