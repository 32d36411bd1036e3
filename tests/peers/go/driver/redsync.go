package main

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
)

// theRedsync is github.com/go-redsync/redsync, which waits by trying again after 50 to 250 ms.
type theRedsync struct {
	clients []*redis.Client
	locks   *redsync.Redsync
}

func newRedsync(addresses []string) library {
	l := &theRedsync{}
	var pools []redsyncredis.Pool
	for _, address := range addresses {
		client := redis.NewClient(&redis.Options{Addr: address})
		l.clients = append(l.clients, client)
		pools = append(pools, goredis.NewPool(client))
	}
	l.locks = redsync.New(pools...)
	return l
}

func (l *theRedsync) acquire(ctx context.Context, name string, ttl time.Duration, once bool) (lock, error) {
	mutex := l.locks.NewMutex(name, redsync.WithExpiry(ttl), redsync.WithTries(math.MaxInt32))
	if !once {
		return &redsyncLock{mutex}, mutex.LockContext(ctx)
	}
	err := mutex.TryLockContext(ctx)
	if taken := (*redsync.ErrTaken)(nil); errors.As(err, &taken) {
		err = errHeld
	}
	return &redsyncLock{mutex}, err
}

func (l *theRedsync) close() {
	for _, client := range l.clients {
		client.Close()
	}
}

type redsyncLock struct{ mutex *redsync.Mutex }

// renew extends it by the ttl that it has.
func (l *redsyncLock) renew(ctx context.Context, _ time.Duration) error {
	return redsyncHeld(l.mutex.ExtendContext(ctx))
}

func (l *redsyncLock) release(ctx context.Context) error {
	return redsyncHeld(l.mutex.UnlockContext(ctx))
}

func redsyncHeld(ok bool, err error) error {
	if taken := (*redsync.ErrTaken)(nil); errors.As(err, &taken) || errors.Is(err, redsync.ErrLockAlreadyExpired) {
		return errNotHeld
	}
	if err == nil && !ok {
		return errNotHeld
	}
	return err
}
