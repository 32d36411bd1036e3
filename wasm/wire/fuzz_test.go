package wire

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzText: every string comes back from its JSON as it was, and encoding/json agrees about what is UTF-8.
func FuzzText(f *testing.F) {
	for _, text := range []string{"", "orders:42", "\x00\x1f \"\\/\x7f", "é 😀 \u2028 \ufffd", "\xff", "a\x80\xc3", "\xed\xb2\x80", "\xf0\x9f\x98"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		quoted := AppendText(nil, text)
		r := newReader(quoted)
		back := r.text()
		r.finish()
		if r.wrong != "" || back != text {
			t.Fatalf("%q became %s and then %q (%s)", text, quoted, back, r.wrong)
		}
		if !utf8.Valid(quoted) {
			t.Fatalf("%q became %q, which is not UTF-8", text, quoted)
		}
		var theirs string
		if err := json.Unmarshal(quoted, &theirs); err != nil {
			t.Fatalf("%q became %s: %v", text, quoted, err)
		}
		if utf8.ValidString(text) && theirs != text {
			t.Fatalf("%q became %s, which is %q to encoding/json", text, quoted, theirs)
		}
		encoded, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		r = newReader(encoded)
		if back := r.text(); utf8.ValidString(text) && (r.wrong != "" || back != text) {
			t.Fatalf("%s of encoding/json is read as %q (%s)", encoded, back, r.wrong)
		}
	})
}

// FuzzReader: the reader takes what encoding/json takes, as the same, unless there are objects, numbers that are
// no integers of 64 bits or lone surrogates in it; and nothing else.
func FuzzReader(f *testing.F) {
	for _, text := range []string{
		`[1,[["tick"]]]`, ` [ -0 , "a" ,null,true, false,[ ] ] `, `"\u00e9\ud83d\ude00\n\/"`, `"\udcff"`, `9223372036854775807`,
		`-9223372036854775808`, `01`, `1.5`, `[1,]`, `[,1]`, `{"a":1}`, "\"\xff\"", `"\ud83d"`, `1 2`, `nul`, "[\"\t\"]",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		r := newReader(input)
		ours := r.any(0)
		r.finish()
		decoder := json.NewDecoder(bytes.NewReader(input))
		decoder.UseNumber()
		var theirs any
		valid := json.Valid(input)
		if valid {
			if err := decoder.Decode(&theirs); err != nil {
				t.Fatal(err)
			}
		}
		switch exotic := isExotic(input, theirs); {
		case r.wrong == "" && !valid:
			t.Fatalf("%q is no JSON, but read as %v", input, ours)
		case r.wrong == "" && !exotic && !equal(ours, theirs):
			t.Fatalf("%q is read as %v, not as %v", input, ours, theirs)
		case r.wrong != "" && valid && !exotic:
			t.Fatalf("%q: %s", input, r.wrong)
		}
	})
}

const depth = 100 // of arrays, beyond which the test does not go

// any reads a value of whatever type comes.
func (r *reader) any(nested int) any {
	switch {
	case nested > depth:
		r.expected("less depth")
		return nil
	case r.nextIs('"'):
		return r.text()
	case r.nextIs('['):
		list := []any{}
		r.begin()
		for r.more() {
			list = append(list, r.any(nested+1))
		}
		r.end()
		return list
	case r.nextIs('t'), r.nextIs('f'):
		return r.boolean()
	case r.null():
		return nil
	}
	return r.integer()
}

// isExotic tells whether JSON has what the reader does not take, or takes as something else.
func isExotic(input []byte, value any) bool {
	if !utf8.Valid(input) || strings.Contains(strings.ToLower(string(input)), `\ud`) {
		return true // FuzzText sees to surrogates
	}
	var walk func(value any, nested int) bool
	walk = func(value any, nested int) bool {
		switch v := value.(type) {
		case map[string]any:
			return true
		case json.Number:
			_, err := strconv.ParseInt(v.String(), 10, 64)
			return err != nil
		case []any:
			for _, element := range v {
				if walk(element, nested+1) {
					return true
				}
			}
			return nested > depth
		}
		return nested > depth
	}
	return walk(value, 0)
}

func equal(ours, theirs any) bool {
	switch v := theirs.(type) {
	case json.Number:
		n, err := strconv.ParseInt(v.String(), 10, 64)
		return err == nil && ours == n
	case []any:
		list, ok := ours.([]any)
		if !ok || len(list) != len(v) {
			return false
		}
		for i := range v {
			if !equal(list[i], v[i]) {
				return false
			}
		}
		return true
	}
	return ours == theirs
}

// FuzzStep: whatever a host says, the session answers with JSON or calls it malformed. It never panics and never fails for good.
func FuzzStep(f *testing.F) {
	const open = `["open",["n0:6379","n1:6379","n2:6379"],"",0,0,"host",7,"go"]`
	const acquire = `["acquire",1,"mutex","x",0,1000000,null,true,null,null,null,0,"","000102030405060708090a0b0c0d0e0f",1700000000000000]`
	for _, events := range []string{
		acquire + `,["answer",1,[1,5]],["answer",2,[1,6]],["renew",2,1,500000],["answer",4,[1]],["answer",5,[0]],["release",3,1],["close",4]`,
		acquire + `,["failed",1,"refused","gone"],["failed",2,"unknown","late"],["failed",3,"error","NOSCRIPT"],["cancel",1]`,
		`["connected",0,"7.0.15","abc",100,false,false,["delex"]],["connected",1,null],["connected",2,"6.0.0","abc",1,true,true,[]]`,
		`["inspect",1,"mutex","x"],["answer",1,[1,"rl0:AAAAAAAAAAAAAAAAAAAAAA:h",-1,7]],["answer",2,[3,"hash"]],["answer",3,[0,"odd"]]`,
		`["force_release",1,"mutex","x","0123456789012345678901234567890123456789"],["answer",1,[1]]`,
		`["subscribed",0,"c"],["dropped",0,"c","why"],["message",0,"c","p"],["tick"]`,
		acquire + `,` + strings.Replace(acquire, ",1,", ",2,", 1),
		strings.Replace(acquire, "null,null,0", "false,[1000,500,2],0", 1) + `,["answer",1,[0,9]],["answer",2,[0,9]]`,
		acquire + `,["answer",1,[0,9000,1,3,"a"]],["answer",2,[0,9000,2,3,"b"]],["message",0,"redlock:released:x","mutex"]`,
	} {
		f.Add([]byte(`[10,[`+events+`]]`), []byte(`[9000000,[["tick"]]]`))
	}
	f.Add([]byte(`[9223372036854775806,[`+acquire+`]]`), []byte(`[0,[["tick"]]]`))
	f.Fuzz(func(t *testing.T, first, second []byte) {
		var s Session
		for _, input := range [][]byte{[]byte(`[0,[` + open + `]]`), first, second, []byte(`[9223372036854775806,[["tick"]]]`)} {
			output, sends, err := s.Step(input)
			switch {
			case err != nil && !strings.HasPrefix(err.Error(), malformed):
				t.Fatalf("%s: %v", input, err)
			case err != nil && (output != nil || sends != nil):
				t.Fatalf("%s: %v, and yet %s %s", input, err, output, sends)
			case err == nil && (!json.Valid(output) || sends != nil && !json.Valid(sends)):
				t.Fatalf("%s: %s %s", input, output, sends)
			}
		}
	})
}
