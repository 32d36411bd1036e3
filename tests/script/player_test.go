package script_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/libredlock/libredlock/core/script"
)

// player plays random calls on the scripts and on the model.
type player struct {
	*rand.Rand
	*several
	*model
	wanted map[string]string
	last   map[string]int // fencing token, by slot; "" of a read-write lock
}

var names = []string{"a", "a2", "a3", "b", "b2", "c", "d", "e"}

// wants is what a name wants: the same for as long as it holds or waits, but for the permits.
func (p *player) wants(name string) string {
	if p.kind() == "semaphore" {
		return strconv.Itoa(1 + p.IntN(4))
	}
	if p.held[name] == "" && !p.waits(name) {
		p.wanted[name] = []string{"r", "r", "w"}[p.IntN(3)]
		if p.wanted[name] == "w" && !p.model.queued {
			p.wanted[name] = []string{"w", "w60000"}[p.IntN(2)]
		}
	}
	return p.wanted[name]
}

// holds is what a name holds or would, as scripts that give it up take it.
func (p *player) holds(wanted, name string) string {
	if p.kind() == "rwlock" {
		return wanted[:1]
	}
	if p.held[name] != "" {
		return "4/" + p.held[name]
	}
	return "4/" + strconv.Itoa(p.IntN(3))
}

func (p *player) kind() string { return p.model.kind }

// play makes one call. It tells what that was, the reply, and the code that was to come.
func (p *player) play() (what string, reply []any, code int) {
	name := names[p.IntN(len(names))]
	wanted := p.wants(name)
	held := p.holds(wanted, name)
	before := maps.Clone(p.held)
	switch n := p.IntN(20); {
	case n < 7:
		reply, code = p.several.acquire(wanted, name), p.model.acquire(wanted, name, true)
		what = "acquire"
	case n < 8 && p.model.queued:
		reply, code = p.tryOnce(wanted, name), p.model.acquire(wanted, name, false)
		what = "try"
	case n < 11 && p.model.queued:
		reply, code = p.several.beat(wanted, name), p.model.beat(wanted, name)
		what = "beat"
	case n < 15:
		reply, code = p.release(held, name), p.drop(held, name)
		what = "release"
	case n < 16:
		reply, code = p.several.undo(held, name), p.model.undo(name)
		what = "undo"
	case n < 17:
		reply, code = p.several.force(digest(name)), p.model.force(name)
		what = "force"
	case n < 18:
		p.expire(name)
		fallthrough
	default:
		what, code = "renew", script.Yes
		if p.held[name] == "" {
			code = p.missing(held, name)
		}
		reply = p.renew(held, name, ttl)
	}
	p.requireFence(what, name, reply, before)
	return what + " " + wanted + " " + held + " " + name, reply, code
}

// expire ends a grant, a place or the intent.
func (p *player) expire(name string) {
	switch {
	case p.held[name] != "":
		p.ends(name, -time.Millisecond)
		delete(p.held, name)
	case p.waits(name):
		p.dead(name)
		for _, place := range p.queue {
			place.dead = place.dead || place.name == name
		}
	case p.intent:
		p.Do("ZADD", lock, p.micros()/1000-1, "i||")
		p.intent = false
	}
}

// requireFence checks the fencing token of a grant: one of its own, or that of the hold that it enters.
func (p *player) requireFence(what, name string, reply []any, before map[string]string) {
	p.t.Helper()
	if len(reply) < 2 || reply[0] != 1 || what == "release" {
		return
	}
	key, number := "", reply[1].(int)
	if len(reply) > 2 {
		key = strconv.Itoa(reply[2].(int))
		require.Equal(p.t, p.held[name], key, "its slot")
	}
	keeps := before[name] != "" && what == "beat" && p.kind() == "semaphore"
	for other, mode := range before {
		keeps = keeps || mode == "w" && owner(other) == owner(name)
	}
	if keeps {
		number++
	}
	require.Greater(p.t, number, p.last[key], "%s of %s", what, name)
	p.last[key] = reply[1].(int)
}

func playModel(t *testing.T, kind string, isQueued bool) {
	t.Parallel()
	s := startKind(t, kind, isQueued)
	e := listen(t, s.Client())
	seen := map[string]int{}
	for seed := range uint64(20) {
		s.Do("FLUSHALL")
		p := &player{
			Rand: rand.New(rand.NewPCG(seed, 3)), several: s, model: &model{kind: kind, queued: isQueued, held: map[string]string{}},
			wanted: map[string]string{}, last: map[string]int{},
		}
		for i := range 150 {
			what, reply, code := p.play()
			context := fmt.Sprintf("seed %d, call %d: %s gave %v", seed, i, what, reply)
			require.Equal(t, code, reply[0], context)
			verb, _, _ := strings.Cut(what, " ")
			if code == script.No && isQueued && len(reply) > 2 {
				turn := 0
				if f := p.first(); f != nil && strings.HasSuffix(what, " "+f.name) {
					turn = 1
				}
				require.Equal(t, turn, reply[2], context)
				verb += fmt.Sprint(" turn ", turn)
			}
			seen[fmt.Sprint(verb, " ", code)]++
			p.requireSame(context)
		}
		p.giveUp()
		var told []string
		for _, message := range e.heard() {
			if fields := strings.Fields(message); fields[0] == "redlock:wake:client" {
				told = append(told, fields[1])
			}
		}
		require.Equal(t, p.model.told, told, "seed %d: one message for each hand-over", seed)
		seen["handed over"] += len(told)
	}
	want := []string{"acquire 1", "acquire 0", "release 0", "release 1", "release 2", "undo 1", "undo 2", "force 0", "force 1", "renew 0", "renew 1", "renew 2"}
	if isQueued {
		want = append(want[2:], "acquire 1", "acquire turn 0 0", "acquire turn 1 0", "try 1", "try turn 0 0", "beat 1", "beat 2", "beat turn 0 0", "beat turn 1 0", "handed over")
	}
	if kind == "rwlock" {
		want = append(want, "acquire 4")
	}
	for _, outcome := range want {
		require.Greater(t, seen[outcome], 9, "%s was hardly tried: %v", outcome, seen)
	}
}

// requireSame compares what is on the server with the model. Grants that have expired may still be there.
func (p *player) requireSame(context string) {
	p.t.Helper()
	now := strconv.Itoa(p.micros() / 1000)
	p.Do("ZREMRANGEBYSCORE", lock, "-inf", now)
	want := []string{}
	for name, what := range p.held {
		want = append(want, what+"|"+name)
	}
	if p.intent {
		want = append(want, "i")
	}
	slices.Sort(want)
	holders := p.holders()
	require.Equal(p.t, want, holders, context)
	p.check(p.t, holders, 4)
	waiting := []string{}
	for _, place := range p.queue {
		waiting = append(waiting, place.name)
	}
	require.Equal(p.t, waiting, p.waiting(), context)
	require.Equal(p.t, int64(len(waiting)), p.Do("HLEN", p.key("places")), context)
}

// giveUp lets all give up what they have. Nothing may be left then but what keeps fencing tokens in order.
func (p *player) giveUp() {
	p.t.Helper()
	for _, name := range names {
		held := p.holds(p.wants(name), name)
		require.Equal(p.t, p.model.undo(name), p.several.undo(held, name)[0])
	}
	p.Do("ZREM", lock, "i||")
	p.leavesNothing()
}

func TestModelOfARWLockWithAQueue(t *testing.T)       { playModel(t, "rwlock", oneNode) }
func TestModelOfARWLockWithoutAQueue(t *testing.T)    { playModel(t, "rwlock", manyNodes) }
func TestModelOfASemaphoreWithAQueue(t *testing.T)    { playModel(t, "semaphore", oneNode) }
func TestModelOfASemaphoreWithoutAQueue(t *testing.T) { playModel(t, "semaphore", manyNodes) }
