package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

// server is a redis-server of the benchmark's own, on a loopback port and without persistence.
type server struct {
	ctx     context.Context
	address string
	version string
	client  *redis.Client
	cmd     *exec.Cmd
}

func startServer() (*server, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	address := listener.Addr().String()
	listener.Close()
	_, port, _ := net.SplitHostPort(address)
	s := &server{ctx: context.Background(), address: address, client: redis.NewClient(&redis.Options{Addr: address})}
	s.cmd = exec.Command("redis-server", "--bind", "127.0.0.1", "--port", port, "--save", "", "--appendonly", "no")
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("redis-server (apt-get install redis-server): %w", err)
	}
	for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		info, err := s.client.InfoMap(s.ctx, "server").Result()
		if err == nil {
			s.version = info["Server"]["redis_version"]
			return s, nil
		}
		if time.Now().After(deadline) {
			s.stop()
			return nil, err
		}
	}
}

func (s *server) stop() {
	s.client.Close()
	s.cmd.Process.Kill()
	s.cmd.Wait()
}

// A counter counts the commands that clients send, from its start to its stop.
type counter struct {
	connection net.Conn
	sent       chan int
}

// count looks at every command (MONITOR): the server's own statistics do not tell what clients send from what
// scripts call.
func (s *server) count() (*counter, error) {
	connection, err := net.Dial("tcp", s.address)
	if err != nil {
		return nil, err
	}
	if _, err := connection.Write([]byte("MONITOR\r\n")); err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(connection)
	lines.Buffer(nil, 1<<20)
	if !lines.Scan() || lines.Text() != "+OK" {
		return nil, fmt.Errorf("MONITOR: %q: %w", lines.Text(), lines.Err())
	}
	c := &counter{connection, make(chan int, 1)}
	go func() {
		sent := 0
		for lines.Scan() { // +1339518083.107412 [0 127.0.0.1:60866] "GET" "x", or [0 lua]
			if _, rest, _ := strings.Cut(lines.Text(), "["); !strings.HasPrefix(rest, "0 lua]") {
				sent++
			}
		}
		c.sent <- sent
	}()
	return c, nil
}

func (c *counter) stop() (int, error) {
	err := c.connection.Close()
	return <-c.sent, err
}
