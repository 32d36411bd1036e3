package main

import (
	"context"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
)

// pipelines is how many connections share the callers when there are many.
const pipelines = 8

// token is as long as one of libredlock's; making it costs this contestant nothing.
const token = "rl1:AAAAAAAAAAAAAAAAAAAAAA:benchmark/12345/go"

// prepareScripts is the limit for anything that sends libredlock's scripts by go-redis: a lone caller sends the
// bare commands; many are not callers at all, but a few goroutines that send as many commands in
// big pipelines, first all acquires of a pipeline, then all releases.
func prepareScripts(s setup) (contestant, error) {
	client := redis.NewClient(&redis.Options{Addr: s.address, MaxRetries: -1, PoolSize: pipelines})
	return func(callers int) []worker {
		if callers == 1 {
			caller := newBare(s, 0)
			return []worker{{pairs: 1, round: func() error { return caller.pair(client) }}}
		}
		workers := make([]worker, min(callers, pipelines))
		for i := range workers {
			var share []bare
			for caller := i; caller < callers; caller += len(workers) {
				share = append(share, newBare(s, caller))
			}
			workers[i] = worker{pairs: len(share), round: func() error { return pipelined(client, share) }}
		}
		return workers
	}, nil
}

// bare is one caller's commands, as libredlock sends them.
type bare struct {
	acquire, release []any
}

func newBare(s setup, caller int) bare {
	key := name(caller)
	side := func(role string) string { return "{" + key + "}:redlock:mutex:" + role + ":" + key }
	keys := []any{"4", key, side("queue"), side("places"), side("fence")}
	return bare{
		acquire: slices.Concat([]any{"EVALSHA", s.acquire}, keys,
			[]any{token, ttl.Milliseconds(), (600 * time.Second).Milliseconds(), "", "benchmarkbenchmarkbench", "123456789012", "3000"}),
		release: slices.Concat([]any{"EVALSHA", s.release}, keys, []any{token}),
	}
}

func (b bare) pair(client *redis.Client) error {
	ctx := context.Background()
	for _, args := range [][]any{b.acquire, b.release} {
		if err := granted(client.Do(ctx, args...)); err != nil {
			return err
		}
	}
	return nil
}

func pipelined(client *redis.Client, share []bare) error {
	ctx := context.Background()
	for _, args := range []func(bare) []any{
		func(b bare) []any { return b.acquire },
		func(b bare) []any { return b.release },
	} {
		cmds := make([]*redis.Cmd, len(share))
		pipe := client.Pipeline()
		for i := range share {
			cmds[i] = pipe.Do(ctx, args(share[i])...)
		}
		if _, err := pipe.Exec(ctx); err != nil {
			return err
		}
		for _, cmd := range cmds {
			if err := granted(cmd); err != nil {
				return err
			}
		}
	}
	return nil
}

// granted reads a script's reply, which begins with 1 for yes.
func granted(cmd *redis.Cmd) error {
	values, err := cmd.Slice()
	if err == nil && values[0] != int64(1) {
		err = errNotGranted
	}
	return err
}
