// Package testredis gives tests real redis-servers of their own, fake nodes that misbehave
// in one known way, and a proxy that breaks connections at a chosen command.
package testredis

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// startLimit bounds how long a server may take until it answers.
const startLimit = 10 * time.Second

// Server is one redis-server that belongs to a test and ends with it.
type Server struct {
	URL     string // "redis://127.0.0.1:port"
	UnixURL string // "unix:///.../redis.sock"
	Addr    string // "127.0.0.1:port"

	t      testing.TB
	dir    string
	args   []string
	client *redis.Client

	mu      sync.Mutex
	process *process // nil while stopped
}

// process is one run of the server.
type process struct {
	cmd  *exec.Cmd
	log  bytes.Buffer  // not to be read before exited is closed
	done chan struct{} // closed when it ended
}

// Start starts a redis-server on a free loopback port and a unix socket, without persistence, and waits
// until it answers. args are added to its command line ("--requirepass", "secret").
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		t.Fatalf("these tests need redis-server (apt-get install redis-server): %v", err)
	}
	dir, err := os.MkdirTemp("", "redis") // not t.TempDir: a socket's path has at most 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	s := &Server{t: t, dir: dir, args: args, UnixURL: "unix://" + filepath.Join(dir, "redis.sock")}
	t.Cleanup(s.Stop)
	for attempt := 1; ; attempt++ {
		s.Addr = freeAddr(t)
		s.URL = "redis://" + s.Addr
		err := s.start()
		if err == nil {
			break
		}
		if attempt == 3 { // another process may have taken the port in between
			t.Fatalf("redis-server doesn't start: %v", err)
		}
	}
	// Over the socket and without a limit of its own on reads, since a paused server is waited for.
	s.client = redis.NewClient(&redis.Options{
		Network: "unix", Addr: filepath.Join(dir, "redis.sock"), Password: password(args), MaxRetries: -1,
	})
	t.Cleanup(func() { s.client.Close() })
	return s
}

// StartN starts n servers.
func StartN(t testing.TB, n int, args ...string) []*Server {
	t.Helper()
	servers := make([]*Server, n)
	for i := range servers {
		servers[i] = Start(t, args...)
	}
	return servers
}

// URLs lists the addresses of servers, as a client takes them.
func URLs(servers []*Server) []string {
	urls := make([]string, len(servers))
	for i, s := range servers {
		urls[i] = s.URL
	}
	return urls
}

// Client is a plain client of the server, for looking at it and for changing it.
func (s *Server) Client() *redis.Client { return s.client }

// Do runs one command and fails the test if the server answers with an error.
func (s *Server) Do(args ...any) any {
	s.t.Helper()
	reply, err := s.client.Do(context.Background(), args...).Result()
	if err != nil && err != redis.Nil {
		s.t.Fatalf("%v on %s: %v", args, s.Addr, err)
	}
	return reply
}

// Keys lists all keys, sorted.
func (s *Server) Keys() []string {
	s.t.Helper()
	keys, err := s.client.Keys(context.Background(), "*").Result()
	if err != nil {
		s.t.Fatalf("KEYS on %s: %v", s.Addr, err)
	}
	slices.Sort(keys)
	return keys
}

// Running tells whether the server has been started and not been stopped since.
func (s *Server) Running() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.process != nil
}

// Stop kills the server. Its memory is gone.
func (s *Server) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil {
		return
	}
	s.process.cmd.Process.Kill() // works on a paused process too
	<-s.process.done
	s.process = nil
}

// Restart starts a server that is empty on the same port, after killing the one that runs there.
func (s *Server) Restart() {
	s.t.Helper()
	s.Stop()
	if err := s.start(); err != nil {
		s.t.Fatalf("redis-server doesn't restart: %v", err)
	}
}

// Pause makes the server fall silent: connections stay, and new ones are accepted by the kernel.
func (s *Server) Pause() { s.signal(syscall.SIGSTOP) }

// Resume ends a Pause. What was sent meanwhile is executed now.
func (s *Server) Resume() { s.signal(syscall.SIGCONT) }

func (s *Server) signal(signal syscall.Signal) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil {
		s.t.Fatalf("the server at %s is stopped", s.Addr)
	}
	if err := s.process.cmd.Process.Signal(signal); err != nil {
		s.t.Fatalf("%v to the server at %s: %v", signal, s.Addr, err)
	}
}

// start runs the server and waits until it answers.
func (s *Server) start() error {
	_, port, err := net.SplitHostPort(s.Addr)
	if err != nil {
		return err
	}
	socket := filepath.Join(s.dir, "redis.sock")
	p := &process{done: make(chan struct{})}
	p.cmd = exec.Command("redis-server", append([]string{
		"--bind", "127.0.0.1", "--port", port, "--unixsocket", socket, "--dir", s.dir,
		"--save", "", "--appendonly", "no", "--loglevel", "warning",
	}, s.args...)...)
	p.cmd.Stdout, p.cmd.Stderr = &p.log, &p.log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // ends even if the tests crash
	if err := p.cmd.Start(); err != nil {
		return err
	}
	go func() {
		p.cmd.Wait()
		close(p.done)
	}()

	for deadline := time.Now().Add(startLimit); !s.answers(p.cmd.Process.Pid); {
		if time.Now().After(deadline) {
			p.cmd.Process.Kill()
			<-p.done
			return fmt.Errorf("no answer within %v\n%s", startLimit, &p.log)
		}
		select {
		case <-p.done:
			return fmt.Errorf("it ended at once:\n%s", &p.log)
		case <-time.After(time.Millisecond):
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.process = p
	return nil
}

// answers tells whether this process, and not somebody else's server, answers on the port.
func (s *Server) answers(pid int) bool {
	conn, err := net.Dial("tcp", s.Addr) // go-redis would wait before it tries again
	if err != nil {
		return false
	}
	conn.Close()
	probe := redis.NewClient(&redis.Options{Addr: s.Addr, Password: password(s.args), MaxRetries: -1})
	defer probe.Close()
	info, err := probe.InfoMap(context.Background(), "server").Result()
	return err == nil && info["Server"]["process_id"] == fmt.Sprint(pid)
}

// password finds the value of --requirepass.
func password(args []string) string {
	if i := slices.Index(args, "--requirepass"); i >= 0 && i+1 < len(args) {
		return args[i+1]
	}
	return ""
}

// Ports are below those that systems give to outgoing connections, and taken in turn from any of them on: so nobody
// comes to have the port of a server that is stopped for a while.
const lowestPort, portCount = 10_000, 22_000

var lastPort atomic.Int64

func init() { lastPort.Store(rand.Int64N(portCount)) }

// freeAddr finds a loopback port that nothing listens on.
func freeAddr(t testing.TB) string {
	t.Helper()
	var err error
	for range 100 {
		addr := fmt.Sprintf("127.0.0.1:%d", lowestPort+lastPort.Add(1)%portCount)
		var listener net.Listener
		if listener, err = net.Listen("tcp", addr); err == nil {
			listener.Close()
			return addr
		}
	}
	t.Fatalf("no port is free: %v", err)
	return ""
}
