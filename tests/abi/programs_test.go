package abi

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/libredlock/libredlock/tests/internal/testredis"
)

// Nothing is loaded and no thread started before the first open.
func TestQuiet(t *testing.T) {
	output(t, compile(t, build(t), "quiet"), testredis.Start(t).URL)
}

func TestMisuse(t *testing.T) {
	output(t, compile(t, build(t), "misuse"), testredis.Start(t).URL)
}

func TestVerbs(t *testing.T) {
	output(t, compile(t, build(t), "verbs"), testredis.Start(t).URL)
}

func TestEvents(t *testing.T) {
	output(t, compile(t, build(t), "events"), testredis.Start(t).URL)
}

func TestStress(t *testing.T) {
	output(t, compile(t, build(t), "stress"), testredis.Start(t).URL, "8", "100")
}

func TestHealth(t *testing.T) {
	server := testredis.Start(t, "--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru")
	require.Contains(t, output(t, compile(t, build(t), "health"), server.URL), "evict")
}

// A password is in no message, wherever it stands and whatever is wrong.
func TestPasswordsStaySecret(t *testing.T) {
	const secret = "s3cr3t-Pass"
	server := testredis.Start(t, "--requirepass", "another")
	urls := []string{
		"redis://:" + secret + "@" + server.Addr,                  // the wrong one
		"redis://user:" + secret + "@" + server.Addr,              // an unknown user
		"redis://:" + secret + "@127.0.0.1:1",                     // refused
		"redis://:" + secret + "@no-such-host.invalid",            // not found
		"redis://:" + secret + "@127.0.0.1:notaport",              // no URL
		"redis://:" + secret + "@127.0.0.1:99999999",              //
		"redis://:" + secret + "%zz@127.0.0.1",                    //
		"http://:" + secret + "@127.0.0.1",                        // another scheme
		":" + secret + "@127.0.0.1",                               //
		"unix://:" + secret + "@/no/such/socket",                  //
		"redis://:" + secret + "@127.0.0.1/not-a-number",          //
		"redis://:" + secret + "\x01@127.0.0.1",                   //
		"redis://127.0.0.1:1/0?password=" + secret,                //
		"redis://:" + secret + "@" + server.Addr + "/0#" + secret, //
	}
	out := output(t, compile(t, build(t), "errors"), urls...)
	require.NotContains(t, out, secret)
	require.NotContains(t, strings.ToLower(out), strings.ToLower(secret))
	require.GreaterOrEqual(t, strings.Count(out, "INVALID"), 6, out)
	require.Contains(t, out, "UNAVAILABLE", out)
}

func TestFork(t *testing.T) {
	server := testredis.Start(t)
	program := compile(t, build(t), "fork")
	for _, name := range []string{
		"before_use", "after_use", "nested", "daemon", "many", "while_loading", "no_copy", "bare",
	} {
		t.Run(name, func(t *testing.T) { run(t, 3*time.Minute, nil, program, name, server.URL) })
	}
}
