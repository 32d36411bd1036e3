package testredis

import (
	"bufio"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// Refusing gives the address of a node that refuses every connection. The port
// stays taken, by a socket that doesn't listen, so that nothing else comes to answer there.
func Refusing(t testing.TB) (url string) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Close(fd) })
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	name, err := unix.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	address := net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: name.(*unix.SockaddrInet4).Port}
	return "redis://" + address.String()
}

// Hanging gives the address of a node that accepts connections and never answers.
func Hanging(t testing.TB) (url string) {
	return serve(t, func(conn net.Conn) { io.Copy(io.Discard, conn) })
}

// Garbage gives the address of a node that answers whatever it gets with what is no Redis protocol.
func Garbage(t testing.TB) (url string) {
	return serve(t, func(conn net.Conn) {
		buffer := make([]byte, 4096)
		for {
			if _, err := conn.Read(buffer); err != nil {
				return
			}
			if _, err := io.WriteString(conn, "\x00\xff\x13garbage, not Redis\r\n\r\n$99999999999999999999\r\n"); err != nil {
				return
			}
		}
	})
}

// wrongTypes are well-formed replies that no script of libredlock gives.
var wrongTypes = []string{
	"+HELLO\r\n", ":7\r\n", "$-1\r\n", "*0\r\n", "*-1\r\n", "$5\r\nHELLO\r\n",
	"*2\r\n$1\r\n1\r\n:5\r\n", "*1\r\n:1\r\n", "*2\r\n:99\r\n:5\r\n", "*2\r\n:1\r\n*1\r\n:1\r\n",
	"*2\r\n:-1\r\n:-1\r\n", "*3\r\n:1\r\n$-1\r\n:1\r\n",
}

// WrongType gives the address of a node that speaks the Redis protocol and seems
// to be well, but answers every script with a reply of the wrong type: each time another one.
func WrongType(t testing.TB) (url string) {
	var next atomic.Int64
	return serve(t, func(conn net.Conn) {
		reader := bufio.NewReader(conn)
		for {
			command, err := readFrame(reader)
			if err != nil || len(command.args) == 0 {
				return
			}
			reply := "+OK\r\n"
			switch strings.ToUpper(command.args[0]) {
			case "EVALSHA", "EVAL":
				reply = wrongTypes[int(next.Add(1)-1)%len(wrongTypes)]
			case "HELLO":
				reply = "-ERR unknown command 'HELLO'\r\n"
			case "PING":
				reply = "+PONG\r\n"
			case "COMMAND":
				reply = "*0\r\n"
			case "INFO":
				reply = "$43\r\nredis_version:7.0.15\r\nuptime_in_seconds:90\r\n\r\n"
			}
			if _, err := io.WriteString(conn, reply); err != nil {
				return
			}
		}
	})
}

// serve listens on a free loopback port until the end of the test and gives each
// connection to handle, in a goroutine of its own.
func serve(t testing.TB, handle func(net.Conn)) (url string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	conns := &connections{}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conns.drop(conn)
				if conns.add(conn) {
					handle(conn)
				}
			}()
		}
	}()
	t.Cleanup(func() {
		listener.Close()
		conns.closeAll()
	})
	return "redis://" + listener.Addr().String()
}

// connections are those of one fake, to be closed with it.
type connections struct {
	mu     sync.Mutex
	open   map[net.Conn]bool
	closed bool
}

func (c *connections) add(conn net.Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	if c.open == nil {
		c.open = map[net.Conn]bool{}
	}
	c.open[conn] = true
	return true
}

func (c *connections) drop(conn net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.open, conn)
	conn.Close()
}

func (c *connections) closeAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for conn := range c.open {
		conn.Close()
	}
}
