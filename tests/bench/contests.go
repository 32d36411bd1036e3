package main

// contest is a question: who makes most pairs with so many callers in a language?
type contest struct {
	peer        string // see peers.go
	title       string
	callers     int
	contestants []contestant
}

// contestant is one answer, as its peer calls it and as the table shows it.
type contestant struct {
	id    string
	shown string
}

// The contestants that several contests have. Every table compares with the scripts: they are the limit.
const (
	ours     = "libredlock"
	unfenced = "libredlock-unfenced"
	scripts  = "scripts"
	plain    = "plain"
	theirs   = "redis-py-lock"
)

var contests = []contest{
	{peer: "go", title: "Go, 1 caller", callers: 1, contestants: inGo("go-redis, the same scripts")},
	{peer: "go", title: "Go, 1,000 callers", callers: 1000, contestants: inGo("go-redis, the same scripts in 8 pipelines")},
	{peer: "c", title: "C, 1 caller", callers: 1, contestants: inC("hiredis")},
	{peer: "c", title: "C, 1,000 callers (submit and drain)", callers: 1000, contestants: inC("hiredis, 8 pipelines")},
	{peer: "python", title: "Python, 1 caller", callers: 1, contestants: []contestant{
		{ours, "libredlock"},
		{scripts, "redis-py, the same scripts"},
		{theirs, "redis-py's Lock"},
	}},
	{peer: "asyncio", title: "Python asyncio, 1 task", callers: 1, contestants: inAsyncio},
	{peer: "asyncio", title: "Python asyncio, 100 tasks", callers: 100, contestants: inAsyncio},
	{peer: "asyncio", title: "Python asyncio, 1,000 tasks", callers: 1000, contestants: inAsyncio},
}

func inGo(same string) []contestant {
	return []contestant{
		{ours, "libredlock"},
		{unfenced, "libredlock without fencing"},
		{scripts, same},
		{plain, "go-redis, SET NX PX and compare-and-delete"},
		{"redsync", "redsync"},
	}
}

func inC(client string) []contestant {
	return []contestant{
		{ours, "libredlock"},
		{scripts, client + ", the same scripts"},
		{plain, client + ", SET NX PX and compare-and-delete"},
	}
}

var inAsyncio = []contestant{
	{ours, "libredlock"},
	{scripts, "redis-py, the same scripts (beyond 1: in 8 pipelines)"},
	{theirs, "redis-py's asyncio Lock"},
}

// target is a ratio that the project promises itself.
type target struct {
	contest  string // its title
	what     string
	over     [2]string // contestants: the pairs a second of the first over those of the second
	atLeast  float64
	inverted bool // shown as the time that a pair takes, and atLeast as the most: 1/atLeast
}

var targets = []target{
	{contest: "Go, 1 caller", what: "time of the same scripts", over: [2]string{ours, scripts}, atLeast: 1 / 1.15, inverted: true},
	{contest: "C, 1 caller", what: "time of the same scripts", over: [2]string{ours, scripts}, atLeast: 1 / 1.15, inverted: true},
	{contest: "Go, 1,000 callers", what: "speed of the pipelined scripts", over: [2]string{ours, scripts}, atLeast: 0.7},
	{contest: "Python, 1 caller", what: "speed of redis-py's Lock", over: [2]string{ours, theirs}, atLeast: 1},
	{contest: "Python asyncio, 1,000 tasks", what: "speed of redis-py's Lock", over: [2]string{ours, theirs}, atLeast: 8},
}
