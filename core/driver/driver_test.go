package driver

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"reflect"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/libredlock/libredlock/core"
)

// recorder is a machine that remembers its events and does what the test says.
type recorder struct {
	events chan core.Event
	react  func(core.Event) core.Effects
}

func (r *recorder) Step(_ core.Time, event core.Event) core.Effects {
	if answer, ok := event.(*core.Answer); ok { // the driver uses its memory again
		event = &core.Answer{Call: answer.Call, Reply: slices.Clone(answer.Reply), Fault: answer.Fault, Cause: answer.Cause}
	}
	r.events <- event
	effects := core.Effects{Wake: core.Never}
	if r.react != nil {
		effects = r.react(event)
		if effects.Wake == 0 {
			effects.Wake = core.Never
		}
	}
	return effects
}

// record puts a recorder in the place of a driver's machine.
func record(t *testing.T, url string) (*Driver, *recorder) {
	d, err := Open(Config{Nodes: []string{url}})
	require.Nil(t, err)
	r := &recorder{events: make(chan core.Event, 100)}
	d.machine = r
	t.Cleanup(d.disconnect)
	return d, r
}

// next gives the next event of a type, which must come first.
func next[E core.Event](t *testing.T, r *recorder) E {
	t.Helper()
	select {
	case event := <-r.events:
		require.IsType(t, *new(E), event)
		return event.(E)
	case <-time.After(10 * time.Second):
		require.Fail(t, "no event", "waiting for %T", *new(E))
		panic("unreachable")
	}
}

func TestFactsPrecedeTheFirstAnswer(t *testing.T) {
	url, server := startRedis(t)
	d, r := record(t, url)
	d.perform(&work{calls: []core.Call{{ID: 7, Args: []string{"EVAL", "return {1, 'two'}", "0"}, Timeout: core.Second}}})

	facts := next[*core.Connected](t, r).Facts
	assert.False(t, facts.Unreadable)
	assert.Regexp(t, `^\d+\.\d+\.\d+$`, facts.Version)
	assert.Len(t, facts.RunID, 40)
	assert.Contains(t, server.Info(context.Background()).Val(), facts.RunID)
	assert.False(t, facts.Replica)
	assert.False(t, facts.Evicts)
	answer := next[*core.Answer](t, r)
	assert.Equal(t, &core.Answer{Call: 7, Reply: []core.Value{{Int: 1}, {Str: "two", IsString: true}}}, answer)
}

func TestFactsOfAnEvictingServerAndOfOneThatHidesThem(t *testing.T) {
	url, server := startRedis(t, "--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru")
	d, r := record(t, url)
	call := core.Call{ID: 1, Args: []string{"EVAL", "return {1}", "0"}, Timeout: core.Second}
	d.perform(&work{calls: []core.Call{call}})
	assert.True(t, next[*core.Connected](t, r).Facts.Evicts)
	next[*core.Answer](t, r)

	require.NoError(t, server.Do(context.Background(), "ACL", "SETUSER", "default", "-info").Err())
	d, r = record(t, url)
	d.perform(&work{calls: []core.Call{call}})
	assert.True(t, next[*core.Connected](t, r).Facts.Unreadable)
	assert.Equal(t, core.NoFault, next[*core.Answer](t, r).Fault)
}

func TestSubscriptionsAreConfirmedDroppedAndConfirmedAgain(t *testing.T) {
	ctx := context.Background()
	url, server := startRedis(t)
	d, r := record(t, url)
	turn := func(on bool, channels ...string) {
		d.mu.Lock()
		r.react = func(event core.Event) (effects core.Effects) {
			if _, ok := event.(*core.Tick); ok {
				for _, channel := range channels {
					effects.Subscriptions = append(effects.Subscriptions, core.Subscription{Channel: channel, On: on})
				}
			}
			return effects
		}
		d.mu.Unlock()
		d.step(&core.Tick{})
		next[*core.Tick](t, r)
	}

	turn(true, "news", "weather")
	next[*core.Connected](t, r)
	assert.Equal(t, "news", next[*core.Subscribed](t, r).Channel)
	assert.Equal(t, "weather", next[*core.Subscribed](t, r).Channel)

	require.NoError(t, server.Publish(ctx, "news", "one").Err())
	assert.Equal(t, &core.Message{Channel: "news", Payload: "one"}, next[*core.Message](t, r))

	require.NoError(t, server.ClientKillByFilter(ctx, "TYPE", "pubsub").Err())
	next[*core.Connected](t, r)
	dropped := []string{next[*core.Dropped](t, r).Channel, next[*core.Dropped](t, r).Channel}
	assert.ElementsMatch(t, []string{"news", "weather"}, dropped)
	confirmed := []string{next[*core.Subscribed](t, r).Channel, next[*core.Subscribed](t, r).Channel}
	assert.ElementsMatch(t, []string{"news", "weather"}, confirmed)

	turn(false, "news")
	require.Eventually(t, func() bool {
		return server.PubSubNumSub(ctx, "news").Val()["news"] == 0
	}, 10*time.Second, 5*time.Millisecond)
	require.NoError(t, server.Publish(ctx, "news", "two").Err())
	require.NoError(t, server.Publish(ctx, "weather", "rain").Err())
	assert.Equal(t, "rain", next[*core.Message](t, r).Payload)
	assert.Equal(t, int64(1), server.PubSubNumSub(ctx, "weather").Val()["weather"], "one connection for all channels")
}

func TestASubscriptionThatIsRefusedIsToldAndTriedAgain(t *testing.T) {
	ctx := context.Background()
	url, server := startRedis(t)
	require.NoError(t, server.Do(ctx, "ACL", "SETUSER", "default", "resetchannels", "&news").Err())
	d, r := record(t, url)
	d.mu.Lock()
	r.react = func(event core.Event) (effects core.Effects) {
		if _, ok := event.(*core.Tick); ok {
			effects.Subscriptions = []core.Subscription{{Channel: "weather", On: true}, {Channel: "news", On: true}, {Channel: "sports", On: true}}
		}
		return effects
	}
	d.mu.Unlock()
	d.step(&core.Tick{})
	await := func(wanted ...core.Event) { // in any order, and between others
		t.Helper()
		late := time.After(10 * time.Second)
		for len(wanted) > 0 {
			select {
			case event := <-r.events:
				wanted = slices.DeleteFunc(wanted, func(w core.Event) bool { return reflect.DeepEqual(w, event) })
			case <-late:
				require.Fail(t, "missing", "%+v", wanted)
			}
		}
	}
	const denial = "NOPERM this user has no permissions to access one of the channels used as arguments"
	await(&core.Dropped{Channel: "weather", Cause: denial}, &core.Dropped{Channel: "sports", Cause: denial}, &core.Subscribed{Channel: "news"})
	require.NoError(t, server.Publish(ctx, "news", "one").Err())
	await(&core.Message{Channel: "news", Payload: "one"})

	require.NoError(t, server.Do(ctx, "ACL", "SETUSER", "default", "allchannels").Err())
	await(&core.Subscribed{Channel: "weather"}, &core.Subscribed{Channel: "sports"})
}

// The handshake of a subscription hangs, first that of the subscribe, then that of the one that receives.
func TestASubscriptionToAServerThatHangsDoesNotHoldUpClosing(t *testing.T) {
	for _, connections := range []int{1, 2} {
		socket := filepath.Join(t.TempDir(), "hanging.sock")
		server, err := net.Listen("unix", socket)
		require.NoError(t, err)
		defer server.Close()
		d, _ := record(t, "unix://"+socket)
		d.nodes[0].listener.change(core.Subscription{Channel: "news", On: true})
		for range connections {
			conn, err := server.Accept()
			require.NoError(t, err)
			defer conn.Close()
			_, err = conn.Read(make([]byte, 1)) // the handshake has begun
			require.NoError(t, err)
		}
		begun := time.Now()
		d.disconnect()
		assert.Less(t, time.Since(begun), time.Second, "with connection %d", connections)
	}
}

func TestAnUnwrittenCallIsRefusedAndAnUnansweredOneUnknown(t *testing.T) {
	url, _ := startRedis(t)
	call := core.Call{ID: 1, Args: []string{"EVAL", "while true do end", "0"}, Timeout: 50 * core.Millisecond}
	d, r := record(t, url)
	d.perform(&work{calls: []core.Call{call}})
	next[*core.Connected](t, r)
	answer := next[*core.Answer](t, r)
	assert.Equal(t, core.Unknown, answer.Fault)
	assert.Equal(t, "timeout after 50 ms", answer.Cause)

	d, r = record(t, "unix:///nowhere/redis.sock")
	d.perform(&work{calls: []core.Call{call}})
	answer = next[*core.Answer](t, r)
	assert.Equal(t, core.Refused, answer.Fault)
	assert.Equal(t, "no such file or directory", answer.Cause)
}

func TestURLs(t *testing.T) {
	good := map[string]endpoint{
		"redis://localhost":                 {network: "tcp", address: "localhost:6379"},
		"redis://10.0.0.1:7000/3":           {network: "tcp", address: "10.0.0.1:7000", db: 3},
		"redis://me:s%40cret@[::1]:7000/":   {network: "tcp", address: "[::1]:7000", username: "me", password: "s@cret"},
		"redis://:pw@h":                     {network: "tcp", address: "h:6379", password: "pw"},
		"unix:///run/redis.sock":            {network: "unix", address: "/run/redis.sock"},
		"unix://u:pw@/run/redis.sock?db=12": {network: "unix", address: "/run/redis.sock", username: "u", password: "pw", db: 12},
	}
	for text, want := range good {
		got, err := parseURL(0, text)
		require.Nil(t, err, text)
		assert.Equal(t, want, got, text)
	}
	bad := map[string]core.Status{
		"":                              core.Invalid,
		"localhost:6379":                core.Invalid,
		"http://:hunter2@h":             core.Invalid,
		"redis://:hunter2@":             core.Invalid,
		"redis://:hunter2@h:99999":      core.Invalid,
		"redis://:hunter2@h:x":          core.Invalid,
		"redis://:hunter2#x@h":          core.Invalid,
		"redis://u:hunter2 @h/zero":     core.Invalid,
		"redis://:hunter2@h/-1":         core.Invalid,
		"redis://:hunter2@h?db=1":       core.Invalid,
		"unix://:hunter2@relative/path": core.Invalid,
		"unix://:hunter2@/p?x=1":        core.Invalid,
		"rediss://:hunter2@h":           core.Unsupported,
		"redis+sentinel://:hunter2@h/m": core.Unsupported,
		"redis+cluster://:hunter2@h":    core.Unsupported,
	}
	for text, status := range bad {
		_, err := parseURL(2, text)
		require.NotNil(t, err, text)
		assert.Equal(t, status, err.Status, text)
		assert.Contains(t, err.Message, "node 2: ", text)
		assert.NotContains(t, err.Error(), "hunter2", text)
	}
}

func TestTheSameServerTwiceIsNoQuorum(t *testing.T) {
	_, err := Open(Config{Nodes: []string{"redis://h:6379/0", "redis://other", "redis://h/1"}})
	require.NotNil(t, err)
	assert.Equal(t, core.Invalid, err.Status)
	assert.Contains(t, err.Message, "nodes 0 and 2 are the same server (h:6379)")
}

func TestAPasswordThatAServerEchoesIsRedacted(t *testing.T) {
	n := &node{endpoint: endpoint{password: "hunter2"}}
	cmd := redis.NewCmd(context.Background())
	cmd.SetErr(errors.New("unknown command 'AUTH', beginning with: 'hunter2'"))
	assert.Equal(t, "unknown command 'AUTH', beginning with: '***'", n.answer(core.Call{}, cmd, nil).Cause)
}

func TestAPanicOfTheMachineEndsEverythingAsInternal(t *testing.T) {
	d, r := record(t, "redis://localhost")
	ctx := context.Background()
	r.react = func(event core.Event) (effects core.Effects) {
		switch e := event.(type) {
		case *core.Acquire:
			if e.Name == "held" {
				effects.Outcomes = []core.Outcome{{Op: e.Op, Token: "token", Deadline: core.Never}}
			}
		case *core.Close:
			panic("broken")
		}
		return effects
	}
	hold := d.Do(ctx, &core.Acquire{Name: "held"}).Hold
	lost := make(chan string, 1)
	hold.OnLost(func(cause string) { lost <- cause })
	waiting := make(chan Result, 1)
	d.Submit(Submission{d.Reserve(1), &core.Acquire{Name: "waiting"}, func(r Result) { waiting <- r }})

	for _, err := range []*core.Error{d.Close(), (<-waiting).Err, d.Do(ctx, &core.Inspect{}).Err, hold.Release()} {
		require.NotNil(t, err)
		assert.Equal(t, core.Internal, err.Status)
		assert.Contains(t, err.Message, "broken")
	}
	assert.Contains(t, <-lost, "INTERNAL")
	assert.Zero(t, hold.Remaining())
}

func TestACallThatFindsItsConnectionDeadEndsInTime(t *testing.T) {
	ctx := context.Background()
	url, server := startRedis(t)
	d, r := record(t, url)
	n := d.nodes[0]
	var unreachable atomic.Bool
	over := make(chan struct{})
	defer close(over)
	n.redis = redis.NewClient(n.options(func(ctx context.Context, network, address string) (net.Conn, error) {
		if unreachable.Load() { // as if nothing answered the connection's first packet
			<-over
			return nil, errors.New("the test is over")
		}
		return n.dial(ctx, network, address)
	}, 1))
	n.alone = n.redis
	call := core.Call{ID: 1, Args: []string{"EVAL", "return {1}", "0"}, Timeout: 50 * core.Millisecond}
	d.perform(&work{calls: []core.Call{call}})
	next[*core.Connected](t, r)
	require.Equal(t, core.NoFault, next[*core.Answer](t, r).Fault)

	unreachable.Store(true)
	require.NoError(t, server.ClientKillByFilter(ctx, "SKIPME", "yes").Err())
	client := n.enter()
	require.NotNil(t, client, "the pool has not noticed yet")
	began := time.Now()
	answer := n.do(call, client, new(pipeline)).(*core.Answer)
	assert.NotEqual(t, core.NoFault, answer.Fault)
	assert.Less(t, time.Since(began), 2*time.Second)
}
