package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"

	"github.com/libredlock/libredlock/core/redlock"
)

const ttl = 10 * time.Second

var contestants = map[string]func(setup) (contestant, error){
	"libredlock":          func(s setup) (contestant, error) { return prepareLibredlock(s, true) },
	"libredlock-unfenced": func(s setup) (contestant, error) { return prepareLibredlock(s, false) },
	"scripts":             prepareScripts,
	"plain":               preparePlain,
	"redsync":             prepareRedsync,
}

var errNotGranted = errors.New("a lock was not granted, or not there at its release")

// name is that of one caller's lock: nobody else wants it.
func name(caller int) string { return fmt.Sprintf("bench:%04d", caller) }

// each makes one worker a caller.
func each(callers int, round func(caller int) func() error) []worker {
	workers := make([]worker, callers)
	for i := range workers {
		workers[i] = worker{pairs: 1, round: round(i)}
	}
	return workers
}

func prepareLibredlock(s setup, fencing bool) (contestant, error) {
	ctx := context.Background()
	client, err := redlock.Open(ctx, redlock.Config{Nodes: []string{"redis://" + s.address}})
	if err != nil {
		return nil, err
	}
	return func(callers int) []worker {
		return each(callers, func(caller int) func() error {
			lock := client.Mutex(name(caller), redlock.WithTTL(ttl), redlock.WithFencing(fencing))
			return func() error {
				held, err := lock.Acquire(ctx)
				if err != nil {
					return err
				}
				return held.Release()
			}
		})
	}, nil
}

// preparePlain is what one writes without a library: SET NX PX, and a script that deletes what is one's own.
func preparePlain(s setup) (contestant, error) {
	ctx := context.Background()
	client := redis.NewClient(&redis.Options{Addr: s.address, MaxRetries: -1})
	return func(callers int) []worker {
		return each(callers, func(caller int) func() error {
			key := name(caller)
			return func() error {
				token := rand.Text()
				granted, err := client.SetNX(ctx, key, token, ttl).Result()
				if err != nil {
					return err
				}
				released, err := client.EvalSha(ctx, s.compareAndDelete, []string{key}, token).Int()
				if err == nil && (!granted || released != 1) {
					err = errNotGranted
				}
				return err
			}
		})
	}, nil
}

func prepareRedsync(s setup) (contestant, error) {
	client := redis.NewClient(&redis.Options{Addr: s.address, MaxRetries: -1})
	locks := redsync.New(goredis.NewPool(client))
	return func(callers int) []worker {
		return each(callers, func(caller int) func() error {
			mutex := locks.NewMutex(name(caller), redsync.WithExpiry(ttl))
			return func() error {
				if err := mutex.Lock(); err != nil {
					return err
				}
				_, err := mutex.Unlock()
				return err
			}
		})
	}, nil
}
