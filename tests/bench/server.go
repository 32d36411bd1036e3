package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/libredlock/libredlock/core/script"
)

// compareAndDelete is what everybody without a library of scripts releases with.
const compareAndDelete = `if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) else return 0 end`

// server is a redis-server of the benchmark's own, on a loopback port and without persistence.
type server struct {
	address string
	version string
	client  *redis.Client
	cmd     *exec.Cmd

	acquire, release, compareAndDelete string // the SHA-1s of scripts that it has
}

func startServer(ctx context.Context) (*server, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	address := listener.Addr().String()
	listener.Close()
	_, port, _ := net.SplitHostPort(address)

	var log bytes.Buffer
	s := &server{address: address, client: redis.NewClient(&redis.Options{Addr: address})}
	s.cmd = exec.Command("redis-server", "--bind", "127.0.0.1", "--port", port, "--save", "", "--appendonly", "no")
	s.cmd.Stdout, s.cmd.Stderr = &log, &log
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	if err := s.prepare(ctx); err != nil {
		s.stop()
		return nil, fmt.Errorf("redis-server: %w\n%s", err, &log)
	}
	return s, nil
}

// prepare waits until the server answers, and gives it the scripts.
func (s *server) prepare(ctx context.Context) error {
	for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		err := s.client.Ping(ctx).Err()
		if err == nil {
			break
		}
		if time.Now().After(deadline) {
			return err
		}
	}
	info, err := s.client.Info(ctx, "server").Result()
	if err != nil {
		return err
	}
	s.version = infoField(info, "redis_version")
	for _, each := range []struct {
		source string
		sha    *string
	}{
		{script.MutexAcquire.Source, &s.acquire},
		{script.MutexRelease.Source, &s.release},
		{compareAndDelete, &s.compareAndDelete},
	} {
		if *each.sha, err = s.client.ScriptLoad(ctx, each.source).Result(); err != nil {
			return err
		}
	}
	return nil
}

func (s *server) stop() {
	s.client.Close()
	s.cmd.Process.Kill()
	s.cmd.Wait()
}

func infoField(info, name string) string {
	for line := range strings.Lines(info) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// queued calls a script with all keys of a lock.
func queued(sha, key string, args ...any) []any {
	side := "{" + key + "}:redlock:mutex:"
	return slices.Concat([]any{"EVALSHA", sha, 4, key, side + "queue:" + key, side + "places:" + key, side + "fence:" + key}, args)
}

// cost is the server's own time for one call of a command, by its statistics.
type cost struct {
	what         string
	microseconds float64
}

// costs measures what the server needs for the commands that the contestants send, over so many calls of each.
func (s *server) costs(ctx context.Context, calls int) ([]cost, error) {
	const token, ttl, fenceTTL = "rl1:AAAAAAAAAAAAAAAAAAAAAA:benchmark/12345/go", "10000", "600000"
	commands := []struct {
		what string
		args func(key string) []any
	}{
		{"acquire with queue and fencing", func(key string) []any { return queued(s.acquire, key, token, ttl, fenceTTL, "", "client", "1", "3000") }},
		{"release", func(key string) []any { return queued(s.release, key, token) }},
		{"acquire with queue, without fencing", func(key string) []any { return queued(s.acquire, key, token, ttl, "0", "", "client", "1", "3000") }},
		{"release", func(key string) []any { return queued(s.release, key, token) }},
		{"acquire without queue and fencing", func(key string) []any { return []any{"EVALSHA", s.acquire, 1, key, token, ttl, fenceTTL, ""} }},
		{"release", func(key string) []any { return []any{"EVALSHA", s.release, 1, key, token} }},
		{"SET NX PX", func(key string) []any { return []any{"SET", key, token, "NX", "PX", ttl} }},
		{"compare-and-delete", func(key string) []any { return []any{"EVALSHA", s.compareAndDelete, 1, key, token} }},
	}
	var costs []cost
	seen := map[string]bool{}
	for _, command := range commands {
		if err := s.client.ConfigResetStat(ctx).Err(); err != nil {
			return nil, err
		}
		pipe := s.client.Pipeline()
		var name string
		for i := range calls {
			args := command.args(fmt.Sprintf("cost:%04d", i))
			name = strings.ToLower(args[0].(string))
			pipe.Do(ctx, args...)
		}
		if _, err := pipe.Exec(ctx); err != nil {
			return nil, err
		}
		info, err := s.client.Info(ctx, "commandstats").Result()
		if err != nil {
			return nil, err
		}
		var took float64
		_, statistics, _ := strings.Cut(infoField(info, "cmdstat_"+name), "usec_per_call=")
		if _, err := fmt.Sscanf(statistics, "%f", &took); err != nil {
			return nil, fmt.Errorf("INFO commandstats has no cost of %s: %w", name, err)
		}
		if !seen[command.what] {
			seen[command.what] = true
			costs = append(costs, cost{command.what, took})
		}
	}
	return costs, nil
}
