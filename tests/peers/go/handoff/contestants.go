package main

import (
	"context"
	"math"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"

	"github.com/libredlock/libredlock/core/redlock"
)

const (
	name = "handoff"
	ttl  = time.Minute
)

// contestants connect, and make what one worker acquires by. But for the ttl, and for waiting without limit, all have their defaults.
var contestants = map[string]func(address string) (func() acquire, error){
	"libredlock":  openLibredlock,
	"redsync":     openRedsync,
	"rueidislock": openRueidislock,
}

func openLibredlock(address string) (func() acquire, error) {
	ctx := context.Background()
	client, err := redlock.Open(ctx, redlock.Config{Nodes: []string{"redis://" + address}})
	if err != nil {
		return nil, err
	}
	if _, err := client.Inspect(ctx, name); err != nil { // connects
		return nil, err
	}
	lock := client.Mutex(name, redlock.WithTTL(ttl))
	return func() acquire {
		return func() (func() error, error) {
			held, err := lock.Acquire(ctx)
			if err != nil {
				return nil, err
			}
			return held.Release, nil
		}
	}, nil
}

func openRedsync(address string) (func() acquire, error) {
	client := redis.NewClient(&redis.Options{Addr: address})
	if err := client.Ping(context.Background()).Err(); err != nil {
		return nil, err
	}
	locks := redsync.New(goredis.NewPool(client))
	return func() acquire {
		mutex := locks.NewMutex(name, redsync.WithExpiry(ttl), redsync.WithTries(math.MaxInt32))
		release := func() error {
			_, err := mutex.Unlock()
			return err
		}
		return func() (func() error, error) { return release, mutex.Lock() }
	}, nil
}

// openRueidislock asks for one key: its default of three, of which two have to be had, is for several servers.
func openRueidislock(address string) (func() acquire, error) {
	locker, err := rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption: rueidis.ClientOption{InitAddress: []string{address}},
		KeyMajority:  1, KeyValidity: ttl,
	})
	if err != nil {
		return nil, err
	}
	return func() acquire {
		return func() (func() error, error) {
			_, cancel, err := locker.WithContext(context.Background(), name)
			return func() error { cancel(); return nil }, err
		}
	}, nil
}
