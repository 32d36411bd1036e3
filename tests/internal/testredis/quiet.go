package testredis

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// quiet drops what go-redis would write to standard error about every connection that fails: here they are meant to.
type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}

func init() { redis.SetLogger(quiet{}) }
