package script_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/libredlock/libredlock/core/sim"
)

// backend is a server that the same commands are sent to as to others. Its replies are written as text.
type backend interface {
	// do runs EVAL, EVALSHA, or one of SET key value [PX ms], DEL key, SCRIPT FLUSH, and LIST key, which puts a list of one item there.
	do(args []string) string
}

var _, _ backend = &simulated{}, remote{}

// simulated is the simulation's executor.
type simulated struct {
	*sim.Server
	messages []string // that it published
}

func simulate(now func() int64) *simulated {
	s := &simulated{Server: sim.NewServer(now)}
	s.Publish = func(channel, payload string) int64 {
		s.messages = append(s.messages, channel+" "+payload)
		return 1 // the ear
	}
	return s
}

func (s *simulated) heard() []string { return s.messages }

func (s *simulated) do(args []string) string {
	switch args[0] {
	case "SET":
		ttl := 0
		if len(args) > 4 {
			ttl, _ = strconv.Atoi(args[4])
		}
		s.Put(args[1], "string", args[2], int64(ttl))
		return "OK"
	case "LIST":
		s.Put(args[1], "list", "1", 0)
		return "OK"
	case "DEL":
		s.Delete(args[1])
		return "OK"
	case "SCRIPT":
		s.ForgetScripts()
		return "OK"
	}
	reply, err := s.Do(args)
	if err != nil {
		return failure(err)
	}
	parts := make([]string, len(reply))
	for i, v := range reply {
		if parts[i] = strconv.FormatInt(v.Int, 10); v.IsString {
			parts[i] = strconv.Quote(v.Str)
		}
	}
	return "[" + strings.Join(parts, " ") + "]"
}

// remote is a server behind a client.
type remote struct {
	client  *redis.Client
	forgets bool // a script whose first EVAL fails, as miniredis does and Redis does not
}

func (r remote) do(args []string) string {
	if args[0] == "LIST" {
		r.do([]string{"DEL", args[1]})
		r.do([]string{"RPUSH", args[1], "1"})
		return "OK"
	}
	command := make([]any, len(args))
	for i, arg := range args {
		command[i] = arg
	}
	reply, err := r.client.Do(context.Background(), command...).Result()
	if err != nil {
		if args[0] == "EVAL" && r.forgets {
			r.client.ScriptLoad(context.Background(), args[1])
		}
		return failure(err)
	}
	list, isList := reply.([]any)
	if !isList {
		return "OK"
	}
	parts := make([]string, len(list))
	for i, v := range list {
		parts[i] = fmt.Sprint(v)
		if text, isText := v.(string); isText {
			parts[i] = strconv.Quote(text)
		}
	}
	return "[" + strings.Join(parts, " ") + "]"
}

// failure is the code of an error: the rest is worded differently everywhere, and
// miniredis puts an error within a script behind a text of its own.
func failure(err error) string {
	for _, code := range []string{"WRONGTYPE", "NOSCRIPT"} {
		if strings.Contains(err.Error(), code) {
			return "error " + code
		}
	}
	return "error " + err.Error()
}

// embedded starts a miniredis whose keys expire by its own clock.
func embedded(t *testing.T, now time.Time) (*miniredis.Miniredis, remote) {
	server := miniredis.NewMiniRedis()
	server.SetTime(now)
	server.ClockTTL(true)
	require.NoError(t, server.Start())
	t.Cleanup(server.Close)
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), MaxRetries: -1})
	t.Cleanup(func() { client.Close() })
	return server, remote{client, true}
}

// ear hears what is published on the channels of a server.
type ear struct {
	t      *testing.T
	client *redis.Client
	pubsub *redis.PubSub
}

func listen(t *testing.T, client *redis.Client, more ...string) *ear {
	pubsub := client.PSubscribe(context.Background(), append(more, "redlock:*")...)
	t.Cleanup(func() { pubsub.Close() })
	for range len(more) + 1 {
		_, err := pubsub.Receive(context.Background()) // that it listens
		require.NoError(t, err)
	}
	return &ear{t, client, pubsub}
}

// heard gives all messages, with their channels, since it was called last.
func (e *ear) heard() (messages []string) {
	const last = "redlock:wake:last"
	require.NoError(e.t, e.client.Publish(context.Background(), last, "").Err())
	for {
		m, err := e.pubsub.ReceiveMessage(context.Background())
		require.NoError(e.t, err)
		if m.Channel == last {
			return messages
		}
		messages = append(messages, m.Channel+" "+m.Payload)
	}
}

// values reads the integers of a reply's text, so that those that depend on time can be compared with some leeway.
func values(reply string) (numbers []int64, rest string) {
	var text []string
	for word := range strings.FieldsSeq(strings.Trim(reply, "[]")) {
		n, err := strconv.ParseInt(word, 10, 64)
		if err != nil {
			text = append(text, word)
			n = 0
		}
		numbers = append(numbers, n)
	}
	return numbers, strings.Join(text, " ")
}
