package runner

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/libredlock/libredlock/tests/internal/testredis"
)

// server does "server 0 stop", "server 0 cut after script 1", "server 0 no keys" and
// "server 0 GET x -> token of h", where the command is in capitals.
func (w *World) server(s *Step, args []Word) error {
	if len(args) < 2 {
		return fmt.Errorf("expected: server <number> <what>")
	}
	n, err := w.number(args[0].Text)
	if err != nil {
		return err
	}
	switch args[1].Text {
	case "stop":
		n.server.Stop()
	case "restart":
		n.server.Restart()
	case "pause":
		n.paused = true
		n.server.Pause()
	case "resume":
		n.paused = false
		n.server.Resume()
	case "no":
		return w.noKeys(args[2:], []*node{n})
	case "cut", "stall", "die":
		return disturb(n, args[1:])
	default:
		if args[1].Text != strings.ToUpper(args[1].Text) {
			return fmt.Errorf("%q is neither a step nor a Redis command in capitals", args[1].Text)
		}
		return w.command(s, n, args[1:])
	}
	return nil
}

// disturb arranges what a proxied server does to the nth script for a lock from now on: "cut before script 1
// on x", "cut after script 1 on x", "stall after script 1 on x", "die before script 1 on x".
func disturb(n *node, words []Word) error {
	if n.proxy == nil {
		return fmt.Errorf("this server is not proxied")
	}
	if len(words) != 6 || words[2].Text != "script" || words[4].Text != "on" {
		return fmt.Errorf("expected: <cut|stall|die> <before|after> script <number> on <lock>")
	}
	nth, err := strconv.ParseInt(words[3].Text, 10, 64)
	if err != nil {
		return err
	}
	var fault testredis.Fault
	die := false
	switch words[0].Text + " " + words[1].Text {
	case "cut before":
		fault = testredis.CutBefore
	case "cut after":
		fault = testredis.CutAfter
	case "stall after":
		fault = testredis.Stall
	case "die before":
		fault, die = testredis.CutBefore, true
	default:
		return fmt.Errorf("no server can %s %s", words[0].Text, words[1].Text)
	}
	var count atomic.Int64
	n.proxy.Hook(func(args []string) testredis.Fault {
		isScript := strings.EqualFold(args[0], "EVALSHA") || strings.EqualFold(args[0], "EVAL")
		if !isScript || !slices.Contains(args, words[5].Text) || count.Add(1) != nth {
			return testredis.Pass
		}
		if die {
			n.server.Stop()
		}
		return fault
	})
	return nil
}

// command sends a Redis command and checks its reply; with "within <duration>" again until it is as expected.
func (w *World) command(s *Step, n *node, words []Word) error {
	args := make([]any, len(words))
	for i, word := range words {
		args[i] = word.Text
	}
	expect, deadline := s.Expect, time.Now()
	if last := len(expect) - 2; last > 0 && expect[last].Text == "within" {
		d, err := time.ParseDuration(expect[last+1].Text)
		if err != nil {
			return err
		}
		expect, deadline = expect[:last], deadline.Add(d)
	}
	for {
		err := w.commandOnce(n, args, expect)
		if err == nil || !time.Now().Before(deadline) {
			return err
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func (w *World) commandOnce(n *node, args []any, expect []Word) error {
	ctx, stop := context.WithTimeout(context.Background(), callLimit)
	defer stop()
	reply, err := n.server.Client().Do(ctx, args...).Result()
	got := flatten(reply)
	switch {
	case err == redis.Nil:
		got = "nil"
	case err != nil && len(expect) == 0:
		return err
	case err != nil:
		got = err.Error()
	}
	if len(expect) == 0 {
		return nil
	}
	if len(expect) == 3 && expect[1].Text == "of" { // token of h
		want, err := w.property(expect[0].Text, expect[2].Text)
		if err != nil {
			return err
		}
		return matches(got, want)
	}
	want := make([]string, len(expect))
	for i, word := range expect {
		want[i] = word.Text
	}
	return matches(got, strings.Join(want, " "))
}

// flatten writes a reply as words.
func flatten(reply any) string {
	switch reply := reply.(type) {
	case []any:
		words := make([]string, len(reply))
		for i, element := range reply {
			words[i] = flatten(element)
		}
		return strings.Join(words, " ")
	case map[any]any:
		return fmt.Sprint(reply)
	case nil:
		return "nil"
	}
	return fmt.Sprint(reply)
}

// noKeys does "no keys" and "no keys within 1s": only fence counters are left on servers that live.
func (w *World) noKeys(args []Word, nodes []*node) error {
	if len(args) == 0 || args[0].Text != "keys" {
		return fmt.Errorf("expected: no keys [within <duration>]")
	}
	deadline := time.Now()
	if len(args) == 3 && args[1].Text == "within" {
		d, err := time.ParseDuration(args[2].Text)
		if err != nil {
			return err
		}
		deadline = deadline.Add(d)
	} else if len(args) != 1 {
		return fmt.Errorf("expected: no keys [within <duration>]")
	}
	for {
		left, err := keysLeft(nodes)
		if err != nil {
			return err
		}
		if len(left) == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("keys are left: %q", left)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func keysLeft(nodes []*node) ([]string, error) {
	var left []string
	for _, n := range nodes {
		if n.server == nil || n.paused || !n.server.Running() {
			continue
		}
		keys, err := n.server.Client().Keys(context.Background(), "*").Result()
		if err != nil && n.server.Running() { // else it died meanwhile
			return nil, err
		}
		for _, key := range keys {
			if !IsFenceCounter(key) {
				left = append(left, key)
			}
		}
	}
	return left, nil
}

// IsFenceCounter tells whether a key is one that outlives its lock.
func IsFenceCounter(key string) bool {
	_, side, found := strings.Cut(key, "}:redlock:")
	kind, role, _ := strings.Cut(side, ":")
	return found && key[0] == '{' && slices.Contains(kinds, kind) && strings.HasPrefix(role, "fence:")
}
