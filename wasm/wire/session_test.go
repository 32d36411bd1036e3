package wire_test

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/libredlock/libredlock/core"
	"github.com/libredlock/libredlock/wasm/wire"
)

const (
	open    = `["open",["n0:6379"],"",0,0,"host",7,"go"]`
	acquire = `["acquire",1,"mutex","x",0,0,0,false,false,false,null,0,"","000102030405060708090a0b0c0d0e0f",1700000000000000]`
	token   = "rl0:AAECAwQFBgcICQoLDA0ODw:host/7/go"
)

// step makes a step that has to succeed.
func step(t testing.TB, s *wire.Session, input string) (output, sends string) {
	t.Helper()
	out, send, err := s.Step([]byte(input))
	require.NoError(t, err, input)
	return string(out), string(send)
}

func TestAcquireAndRelease(t *testing.T) {
	var s wire.Session
	out, sends := step(t, &s, `[1000,[`+open+`,`+acquire+`]]`)
	require.Equal(t, `[[[0,0,"",0,0,null,0]],[],2001000]`, out)
	require.True(t, strings.HasPrefix(sends, `[[[1,0,2000000,["EVALSHA","`), sends)
	require.True(t, strings.HasSuffix(sends, `","1","x","`+token+`","10000","600000",""]]],[]]`), sends)

	out, sends = step(t, &s, `[2000,[["answer",1,[1,0]]]]`)
	require.Equal(t, `[[[1,0,"`+token+`",0,9899000,null,0]],[],9899000]`, out)
	require.Empty(t, sends)

	step(t, &s, `[3000,[["release",2,1]]]`)
	out, sends = step(t, &s, `[4000,[["answer",2,[1]],["inspect",3,"mutex","x"]]]`)
	require.True(t, strings.HasPrefix(out, `[[[2,0,"",0,0,null,0]],[],`), out)
	require.Contains(t, sends, `[[[3,0,`)

	out, _ = step(t, &s, `[5000,[["answer",3,[1,"`+token+`",-1,12,2,3000]]]]`)
	require.Equal(t, `[[[3,0,"",0,0,["mutex",12,[["host/7/go","`+digest(t, out)+`",null,1,0]],2,3000000],0]],[],null]`, out)
}

// digest picks the holder's digest out of an outcome of inspect.
func digest(t *testing.T, output string) string {
	var tree []any
	require.NoError(t, json.Unmarshal([]byte(output), &tree))
	inspection := tree[0].([]any)[0].([]any)[5].([]any)
	return inspection[2].([]any)[0].([]any)[1].(string)
}

func TestFailuresAndNotices(t *testing.T) {
	var s wire.Session
	step(t, &s, `[0,[`+open+`,`+acquire+`]]`)
	out, _ := step(t, &s, `[1,[["failed",1,"refused","no \"route\""]]]`)
	require.Equal(t, `[[[1,4,"the node failed",[[0,"n0:6379","no \"route\""]]]],[],null]`, out)

	step(t, &s, `[2,[`+strings.Replace(acquire, `"acquire",1`, `"acquire",2`, 1)+`]]`)
	step(t, &s, `[3,[["answer",2,[1,0]]]]`)
	out, _ = step(t, &s, `[20000000,[["tick"],["connected",0,null]]]`)
	require.Equal(t, `[[],[["lost",2,"its lease of 10000 ms ran out"],`+
		`["health",0,"INFO can't be read: version, role and eviction are unknown"]],21000000]`, out)
}

// TestBatch: what is in one batch happens at one time, in its order, and is sent together.
func TestBatch(t *testing.T) {
	var s wire.Session
	step(t, &s, `[0,[`+open+`]]`)
	out, sends := step(t, &s, `[5,[`+acquire+`,["cancel",1],["renew",2,1,0],["close",3]]]`)
	require.True(t, strings.HasPrefix(out, `[[[1,5,"canceled by the caller",[]],[2,7,`), out)
	require.Equal(t, 2, strings.Count(sends, "EVALSHA"), "the acquire and its undo: %s", sends)

	before, _ := step(t, &s, `[6,[]]`)
	require.Equal(t, out[strings.LastIndex(out, ","):], before[strings.LastIndex(before, ","):], "an empty batch changes nothing")
	require.True(t, strings.HasPrefix(before, "[[],[],"), before)
}

func TestOpenIsRefused(t *testing.T) {
	var s wire.Session
	out, sends := step(t, &s, `[0,[["open",[],"",0,0,"h",1,"go"],`+acquire+`]]`)
	require.Equal(t, `[[[0,6,"no node given; 1 to 15 are allowed",[]]],[],null]`, out)
	require.Empty(t, sends)
	step(t, &s, `[0,[`+open+`,`+acquire+`]]`) // better this time
}

// TestBytes: bytes that are no UTF-8 go in and come out as lone surrogates.
func TestBytes(t *testing.T) {
	var s wire.Session
	step(t, &s, `[0,[["open",["n\udcff"],"p\ud83d\ude00\u00e9",0,0,"h",1,"\udcc3\udca9"]]]`)
	out, sends := step(t, &s, `[0,[`+strings.Replace(acquire, `"x"`, `"a\ud83d\ude00\u0001\"\\\n"`, 1)+`]]`)
	require.True(t, strings.HasPrefix(out, `[[],[],`), out)
	require.Contains(t, sends, `"p😀éa😀\u0001\"\\\u000a","rl0:AAECAwQFBgcICQoLDA0ODw:h/1/%C3%A9"`)
	out, _ = step(t, &s, `[0,[["failed",1,"error","\udc80 \udcfe"]]]`)
	require.Equal(t, `[[[1,4,"the node failed",[[0,"n\udcff","\udc80 \udcfe"]]]],[],1000000]`, out)
	out, _ = step(t, &s, `[0,[["inspect",2,"mutex","\udcc3"]]]`)
	require.Equal(t, `[[[2,6,"the name is not valid UTF-8",[]]],[],1000000]`, out)
}

// TestRequestsThatMakeNoSense are answered by core.
func TestRequestsThatMakeNoSense(t *testing.T) {
	var s wire.Session
	step(t, &s, `[0,[`+open+`]]`)
	for request, status := range map[string]core.Status{
		strings.Replace(acquire, `"mutex"`, `"mutant"`, 1):                  core.Invalid,
		strings.Replace(acquire, `"mutex"`, `"read"`, 1):                    core.Unsupported,
		strings.Replace(acquire, `"x",0,0,0`, `"x",0,0,-1`, 1):              core.Invalid,
		strings.Replace(acquire, `"x",0`, `"x",1`, 1):                       core.Invalid,
		strings.Replace(acquire, `"mutex"`, `"semaphore"`, 1):               core.Invalid,
		strings.Replace(acquire, `null,0,""`, `[0,0,-1],0,""`, 1):           core.Invalid,
		strings.Replace(acquire, `false,null,0,""`, `null,[1,0,0],0,""`, 1): core.Invalid,
		`["release",1,9]`: core.NotHeld,
	} {
		out, _ := step(t, &s, `[0,[`+request+`]]`)
		require.True(t, strings.HasPrefix(out, `[[[1,`+strconv.Itoa(int(status))+`,"`), "%s: %s", request, out)
	}
}

// TestHowToPoll: delay, jitter and tries arrive in their places.
func TestHowToPoll(t *testing.T) {
	var s wire.Session
	polling := strings.Replace(acquire, `0,0,false,false,false,null`, `0,null,false,false,false,[7000,1000,2]`, 1)
	step(t, &s, `[0,[`+open+`,`+polling+`]]`)
	out, _ := step(t, &s, `[0,[["answer",1,[0,9000]]]]`)
	var tree []any
	require.NoError(t, json.Unmarshal([]byte(out), &tree))
	wake := tree[2].(float64)
	require.True(t, 7000 <= wake && wake <= 8000, out)
	_, sends := step(t, &s, fmt.Sprintf(`[%.0f,[["tick"]]]`, wake))
	require.Contains(t, sends, "EVALSHA")
	out, _ = step(t, &s, fmt.Sprintf(`[%.0f,[["answer",2,[0,9000]]]]`, wake))
	require.Equal(t, `[[[1,1,"someone else holds it",[]]],[],null]`, out)
}

func TestMalformed(t *testing.T) {
	for input, what := range map[string]string{
		``:                         "expected an array at byte 0",
		`{}`:                       "an array",
		`[]`:                       "an integer",
		`[1]`:                      "a comma",
		`[1,[]`:                    "the end of an array",
		`[1,[],2]`:                 "the end of an array",
		`[1,[]] x`:                 "nothing more",
		`[1,[tick]]`:               "an array",
		`[1,[["tick"`:              "the end of an array",
		`[1,[["tick],`:             "the end of a string",
		`[1,[[]]]`:                 "a string",
		`[1,[["bo"]]]`:             `an event`,
		`[1,[["tick",]`:            "the end of an array",
		`[1,[["tick",2]]]`:         "the end of an array",
		`[1,[["release",1,-1]]]`:   "not negative",
		`[1,[["release",1,1.5]]]`:  "an integer",
		`[1,[["release",1,1e3]]]`:  "an integer",
		`[1,[["release",1,01]]]`:   "an integer",
		`[1,[["release",1,"1"]]]`:  "an integer",
		`[1,[["release",1,null]]]`: "an integer",
		`[1,[["release",1,9223372036854775808]]]`:                        "an integer of 64 bits",
		`[1,[["release",1,99999999999999999999]]]`:                       "an integer of 64 bits",
		`[1,[["answer",1,[1,nil]]]]`:                                     "an integer",
		`[1,[["answer",1,1]]]`:                                           "an array",
		`[1,[["failed",1,"odd",""]]]`:                                    `"refused", "unknown" or "error"`,
		`[1,[["connected",0,nul]]]`:                                      "null",
		`[1,[["connected",0,"7","r",0,0,false,[]]]]`:                     "true or false",
		`[1,[["force_release",1,"mutex","a\x"]]]`:                        "an escape",
		`[1,[["force_release",1,"mutex","a\u12g4"]]]`:                    "four hex digits",
		`[1,[["force_release",1,"mutex","\ud83d"]]]`:                     "a surrogate",
		`[1,[["force_release",1,"mutex","\ud83d\u0041"]]]`:               "a surrogate",
		`[1,[["force_release",1,"mutex","\udc7f"]]]`:                     "a surrogate",
		`[1,[["force_release",1,"mutex","\udd00"]]]`:                     "a surrogate",
		"[1,[[\"force_release\",1,\"mutex\",\"\n":                        "control character",
		"[1,[[\"force_release\",1,\"mutex\",\"\xff\"":                    "UTF-8",
		"[1,[[\"force_release\",1,\"mutex\",\"\xed\xb2\x80\"":            "UTF-8",
		`[1,[["force_release",1,"mutex","\`:                              "an escape",
		`[1,[["force_release",1,"mutex","é`:                              "the end of a string",
		`[9223372036854775807,[["tick"]]]`:                               "an earlier time",
		`[-1,[["tick"]]]`:                                                "not negative",
		`[1,[` + strings.Replace(acquire, "0f", "0g", 1) + `]]`:          "32 hex digits",
		`[1,[` + strings.Replace(acquire, "0f", "0", 1) + `]]`:           "32 hex digits",
		`[1,[` + strings.Replace(acquire, "null", "[1,2]", 1) + `]]`:     "a comma",
		`[1,[` + strings.Replace(acquire, "null", "[1,2,3,4]", 1) + `]]`: "the end of an array",
		`[1,[` + strings.Replace(acquire, "null", "7", 1) + `]]`:         "an array",
		`[1,[` + acquire + `,` + open + `]]`:                             `"open" as the very first`,
		`[1,[` + open + `,` + open + `]]`:                                `"open" as the very first`,
	} {
		fresh, opened := &wire.Session{}, &wire.Session{}
		step(t, opened, `[0,[`+open+`]]`)
		for _, s := range []*wire.Session{fresh, opened} {
			out, sends, err := s.Step([]byte(input))
			require.ErrorContains(t, err, "malformed: expected ", "%s", input)
			require.ErrorContains(t, err, what, "%s", input)
			require.Empty(t, out)
			require.Empty(t, sends)
		}
		// Nothing was done.
		out, _ := step(t, fresh, `[0,[`+open+`,`+acquire+`]]`)
		require.Equal(t, `[[[0,0,"",0,0,null,0]],[],2000000]`, out)
	}
}

// TestNothingOfAMalformedBatchIsDone, not even what comes before the mistake.
func TestNothingOfAMalformedBatchIsDone(t *testing.T) {
	var s wire.Session
	for _, input := range []string{`[0,[` + acquire + `]]`, `[0,[]]`} {
		_, _, err := s.Step([]byte(input))
		require.EqualError(t, err, `malformed: "open" comes first, and once`)
	}
	step(t, &s, `[0,[`+open+`]]`)
	_, _, err := s.Step([]byte(`[0,[` + open + `]]`))
	require.EqualError(t, err, `malformed: "open" comes first, and once`)
	_, _, err = s.Step([]byte(`[0,[` + acquire + `,["tock"]]]`))
	require.ErrorContains(t, err, "malformed: ")
	out, sends := step(t, &s, `[0,[["tick"]]]`)
	require.Equal(t, `[[],[],null]`, out)
	require.Empty(t, sends)
}

// TestFail: after a failure nothing works any more.
func TestFail(t *testing.T) {
	var s wire.Session
	step(t, &s, `[0,[`+open+`]]`)
	require.EqualError(t, s.Fail("core: broken"), "internal: core: broken")
	for _, input := range []string{`[0,[["tick"]]]`, `[`, ``} {
		_, _, err := s.Step([]byte(input))
		require.EqualError(t, err, "internal: core: broken")
	}
}

// TestImports: a step stays fast, and the plugin small, without what these packages bring with them.
func TestImports(t *testing.T) {
	list := exec.Command("go", "list", "-deps", ".")
	list.Env = append(list.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
	out, err := list.Output()
	require.NoError(t, err)
	all := strings.Fields(string(out))
	require.Contains(t, all, "github.com/libredlock/libredlock/wasm/wire")
	for _, name := range []string{"fmt", "reflect", "encoding/json", "os", "net", "crypto/sha1", "math/rand", "math/rand/v2", "log"} {
		require.NotContains(t, all, name)
	}
}
