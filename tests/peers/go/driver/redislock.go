package main

import (
	"context"
	"errors"
	"time"

	"github.com/bsm/redislock"
	"github.com/redis/go-redis/v9"
)

// theRedislock is github.com/bsm/redislock. It has no pace of its own for those who wait: here it is 50 ms.
type theRedislock struct {
	client *redis.Client
	locks  *redislock.Client
}

func newRedislock(addresses []string) library {
	client := redis.NewClient(&redis.Options{Addr: addresses[0]})
	return &theRedislock{client, redislock.New(client)}
}

func (l *theRedislock) acquire(ctx context.Context, name string, ttl time.Duration, once bool) (lock, error) {
	retry := redislock.LinearBackoff(50 * time.Millisecond)
	if once {
		retry = redislock.NoRetry()
	}
	held, err := l.locks.Obtain(ctx, name, ttl, &redislock.Options{RetryStrategy: retry})
	if errors.Is(err, redislock.ErrNotObtained) {
		err = errHeld
	}
	return &redislockLock{held}, err
}

func (l *theRedislock) close() { l.client.Close() }

type redislockLock struct{ lock *redislock.Lock }

func (l *redislockLock) renew(ctx context.Context, ttl time.Duration) error {
	return redislockHeld(l.lock.Refresh(ctx, ttl, nil))
}

func (l *redislockLock) release(ctx context.Context) error {
	return redislockHeld(l.lock.Release(ctx))
}

func redislockHeld(err error) error {
	if errors.Is(err, redislock.ErrNotObtained) || errors.Is(err, redislock.ErrLockNotHeld) {
		return errNotHeld
	}
	return err
}
