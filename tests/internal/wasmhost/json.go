package wasmhost

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"unicode/utf8"
)

// text is a string of bytes as JSON has it here: a byte that is no part of valid UTF-8 is a lone surrogate, for which
// encoding/json has no way.
type text string

func (t text) MarshalJSON() ([]byte, error) {
	out := []byte{'"'}
	for rest := string(t); rest != ""; {
		_, size := utf8.DecodeRuneInString(rest)
		if r, _ := utf8.DecodeRuneInString(rest); r == utf8.RuneError && size == 1 {
			out = fmt.Appendf(out, `\udc%x`, rest[0])
		} else {
			quoted, err := json.Marshal(rest[:size])
			if err != nil {
				return nil, err
			}
			out = append(out, quoted[1:len(quoted)-1]...)
		}
		rest = rest[size:]
	}
	return append(out, '"'), nil
}

// parts of a string in JSON: a pair of surrogates, one that stands for a byte, any other escape, anything else.
var parts = regexp.MustCompile(`\\u[dD][89abAB]..\\u[dD][c-fC-F]..|\\u[dD][cC]([89a-fA-F].)|\\.|[^\\]+`)

func (t *text) UnmarshalJSON(quoted []byte) error {
	if len(quoted) < 2 || quoted[0] != '"' {
		return fmt.Errorf("%s is no string", quoted)
	}
	var out, pending []byte
	flush := func() error {
		var plain string
		err := json.Unmarshal(append(append([]byte{'"'}, pending...), '"'), &plain)
		out, pending = append(out, plain...), nil
		return err
	}
	for _, match := range parts.FindAllSubmatch(quoted[1:len(quoted)-1], -1) {
		if match[1] == nil {
			pending = append(pending, match[0]...)
			continue
		}
		if err := flush(); err != nil {
			return err
		}
		b, err := strconv.ParseUint(string(match[1]), 16, 8)
		if err != nil {
			return err
		}
		out = append(out, byte(b))
	}
	err := flush()
	*t = text(out)
	return err
}

func texts(list []string) []text {
	out := make([]text, len(list)) // never null
	for i := range list {
		out[i] = text(list[i])
	}
	return out
}

// row reads an array by position.
func row(raw []byte, fields ...any) error {
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil {
		return err
	}
	if len(list) != len(fields) {
		return fmt.Errorf("%d elements instead of %d: %s", len(list), len(fields), raw)
	}
	for i, field := range fields {
		if err := json.Unmarshal(list[i], field); err != nil {
			return fmt.Errorf("%w in %s", err, raw)
		}
	}
	return nil
}

// rows reads an array of arrays.
func rows[T any](raw []byte, one func(raw []byte) (T, error)) ([]T, error) {
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, err
	}
	var out []T
	for _, element := range list {
		value, err := one(element)
		if err != nil {
			return nil, err
		}
		out = append(out, value)
	}
	return out, nil
}
