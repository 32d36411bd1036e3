package wire

import (
	"strconv"
	"unicode/utf8"

	"github.com/libredlock/libredlock/core"
)

// What follows appends JSON. An element of an array is put behind a comma unless it is the first: whoever
// appends elements one by one begins with the bracket.

// next puts the comma between two elements.
func next(out []byte) []byte {
	if len(out) == 0 || out[len(out)-1] == '[' {
		return out
	}
	return append(out, ',')
}

func appendInt(out []byte, n int64) []byte { return strconv.AppendInt(next(out), n, 10) }

// appendLimit appends an integer whose largest value stands for "without end".
func appendLimit[T core.Time | core.Duration](out []byte, n T) []byte {
	if int64(n) == int64(core.Never) {
		return append(next(out), "null"...)
	}
	return appendInt(out, int64(n))
}

func appendBool(out []byte, b bool) []byte { return strconv.AppendBool(next(out), b) }

// AppendText appends a string. A byte that is no part of valid UTF-8 becomes the lone surrogate that stands for it.
func AppendText(out []byte, text string) []byte {
	const hex = "0123456789abcdef"
	out = append(next(out), '"')
	start := 0 // of what is not appended yet
	for i := 0; i < len(text); {
		c := text[i]
		if plain[c] {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			if _, size := utf8.DecodeRuneInString(text[i:]); size > 1 {
				i += size
				continue
			}
		}
		out = append(out, text[start:i]...)
		switch {
		case c >= utf8.RuneSelf:
			out = append(out, '\\', 'u', 'd', 'c', hex[c>>4], hex[c&15])
		case c < ' ':
			out = append(out, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			out = append(out, '\\', c)
		}
		i++
		start = i
	}
	return append(append(out, text[start:]...), '"')
}

// plain are the bytes that stand for themselves in a string.
var plain = func() (table [256]bool) {
	for c := ' '; c < utf8.RuneSelf; c++ {
		table[c] = c != '"' && c != '\\'
	}
	return table
}()
