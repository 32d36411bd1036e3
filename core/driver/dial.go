package driver

import (
	"context"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/libredlock/libredlock/core"
)

// dialer is how go-redis connects.
type dialer = func(ctx context.Context, network, address string) (net.Conn, error)

// dial connects to the node. The address is the endpoint's: go-redis passes it on.
func (n *node) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := connect(ctx, network, address)
	if err != nil {
		return nil, dialError{err}
	}
	return n.watched(conn), nil
}

// dialBlocking connects for Config.BlockingReads.
func (n *node) dialBlocking(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := connect(ctx, network, address)
	if err == nil {
		conn, err = block(conn)
	}
	if err != nil {
		return nil, dialError{err}
	}
	return n.watched(conn), nil
}

func connect(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := net.Dialer{KeepAlive: 30 * time.Second}
	return dialer.DialContext(ctx, network, address)
}

func (n *node) watched(conn net.Conn) net.Conn {
	if n.driver.config.OnSocket == nil {
		return conn
	}
	return watch(conn, n.driver.config.OnSocket)
}

// socket is a connection whose descriptor somebody wants to know.
type socket struct {
	net.Conn
	fd    atomic.Int64 // -1 once it is closed
	watch func(fd int, open bool)
}

func watch(conn net.Conn, onSocket func(fd int, open bool)) net.Conn {
	raw, err := conn.(syscall.Conn).SyscallConn()
	if err != nil {
		return conn
	}
	s := &socket{Conn: conn, watch: onSocket}
	if raw.Control(func(fd uintptr) { s.fd.Store(int64(fd)) }) != nil {
		return conn
	}
	onSocket(int(s.fd.Load()), true)
	return s
}

// SyscallConn lets go-redis see whether an idle connection was closed by the server.
func (s *socket) SyscallConn() (syscall.RawConn, error) { return s.Conn.(syscall.Conn).SyscallConn() }

// Close tells before it closes, since the number may be in use again right after.
func (s *socket) Close() error {
	if fd := s.fd.Swap(-1); fd >= 0 {
		s.watch(int(fd), false)
	}
	return s.Conn.Close()
}

// probed are the commands that a server may lack and that some lock would use.
var probed = []any{"delex", "delifeq", "spublish", "waitaof"}

// connected reads what the machine wants to know about a node, on each new connection.
func (n *node) connected(ctx context.Context, conn *redis.Conn) error {
	var info *redis.StringCmd
	var commands *redis.Cmd
	_, err := conn.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		info = pipe.Info(ctx)
		commands = pipe.Do(ctx, append([]any{"command", "info"}, probed...)...)
		return nil
	})
	if err != nil && (!isReply(err) || isFull(err)) {
		return err // the connection is of no use
	}
	facts := core.Facts{Unreadable: true}
	if info.Err() == nil {
		facts = readInfo(info.Val())
	}
	if list, ok := commands.Val().([]any); ok && commands.Err() == nil {
		facts.Capabilities = capabilities(list)
	}
	n.driver.step(&core.Connected{Node: n.index, Facts: facts})
	return nil
}

// readInfo picks the facts out of a reply to INFO.
func readInfo(text string) core.Facts {
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	uptime, err := strconv.ParseInt(fields["uptime_in_seconds"], 10, 64)
	if err != nil || fields["redis_version"] == "" {
		return core.Facts{Unreadable: true}
	}
	policy := fields["maxmemory_policy"]
	return core.Facts{
		Version: fields["redis_version"],
		RunID:   fields["run_id"],
		UptimeS: uptime,
		Replica: fields["role"] == "slave",
		Evicts:  fields["maxmemory"] != "0" && policy != "" && policy != "noeviction",
	}
}

// capabilities are the probed commands that COMMAND INFO knows.
func capabilities(list []any) (known []string) {
	for _, element := range list {
		if description, ok := element.([]any); ok && len(description) > 0 {
			if name, ok := description[0].(string); ok && slices.Contains(probed, any(strings.ToLower(name))) {
				known = append(known, strings.ToLower(name))
			}
		}
	}
	return known
}
