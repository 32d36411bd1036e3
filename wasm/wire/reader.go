package wire

import (
	"slices"
	"strconv"
	"unicode/utf8"
)

// reader takes JSON apart, value by value in the order that the reader's owner expects. The first thing that is
// not as expected stops it: wrong says what, and every value from there on is zero.
type reader struct {
	input []byte
	at    int
	first bool // of an array: no comma precedes the next value
	wrong string
}

func newReader(input []byte) *reader { return &reader{input: input, first: true} }

func (r *reader) expected(what string) {
	if r.wrong == "" {
		r.wrong = "expected " + what + " at byte " + strconv.Itoa(r.at)
		r.at = len(r.input)
	}
}

// peek gives the next byte that is not white space; 0 at the end.
func (r *reader) peek() byte {
	for ; r.at < len(r.input); r.at++ {
		switch c := r.input[r.at]; c {
		case ' ', '\t', '\n', '\r':
		default:
			return c
		}
	}
	return 0
}

// value moves to the next value and gives its first byte.
func (r *reader) value() byte {
	if !r.first {
		if r.peek() != ',' {
			r.expected("a comma")
			return 0
		}
		r.at++
	}
	r.first = false
	return r.peek()
}

// begin enters an array.
func (r *reader) begin() {
	if r.value() != '[' {
		r.expected("an array")
		return
	}
	r.at++
	r.first = true
}

// more tells whether the array has another value.
func (r *reader) more() bool { return r.wrong == "" && r.peek() != ']' }

// end leaves an array, all of whose values were read.
func (r *reader) end() {
	if r.peek() != ']' {
		r.expected("the end of an array")
		return
	}
	r.at++
	r.first = false
}

// finish makes sure that nothing follows.
func (r *reader) finish() {
	if r.peek(); r.at < len(r.input) {
		r.expected("nothing more")
	}
}

// literal takes one of the words that are values.
func (r *reader) literal(word string) bool {
	end := r.at + len(word)
	if end > len(r.input) || string(r.input[r.at:end]) != word {
		return false
	}
	r.at = end
	return true
}

// nextIs tells whether the next value begins so, without reading it.
func (r *reader) nextIs(c byte) bool {
	at, first := r.at, r.first
	is := r.value() == c
	if r.wrong == "" {
		r.at, r.first = at, first
	}
	return is
}

// null takes the next value if it is null; else it is still to be read.
func (r *reader) null() bool {
	if !r.nextIs('n') {
		return false
	}
	if r.value(); !r.literal("null") {
		r.expected("null")
	}
	return true
}

func (r *reader) boolean() bool {
	switch r.value() {
	case 't':
		if r.literal("true") {
			return true
		}
	case 'f':
		if r.literal("false") {
			return false
		}
	}
	r.expected("true or false")
	return false
}

// integer reads a number without fraction or exponent.
func (r *reader) integer() int64 {
	c := r.value()
	start := r.at
	negative := c == '-'
	if negative {
		r.at++
	}
	digits := r.at
	var n uint64
	for ; r.at < len(r.input) && r.at-digits < 19; r.at++ { // 19 digits never overflow
		d := r.input[r.at] - '0'
		if d > 9 {
			break
		}
		n = 10*n + uint64(d)
	}
	length := r.at - digits
	limit := uint64(1<<63 - 1)
	if negative {
		limit++
	}
	if length == 0 || length > 1 && r.input[digits] == '0' || n > limit || r.inNumber() {
		r.at = start
		r.expected("an integer of 64 bits")
		return 0
	}
	if negative {
		return -int64(n)
	}
	return int64(n)
}

// inNumber tells whether what comes next would belong to a number.
func (r *reader) inNumber() bool {
	if r.at == len(r.input) {
		return false
	}
	c := r.input[r.at]
	return c-'0' <= 9 || c == '.' || c == 'e' || c == 'E'
}

// natural reads an integer that is not negative.
func (r *reader) natural() uint64 {
	n := r.integer()
	if n < 0 {
		r.expected("an integer that is not negative, before what is")
		return 0
	}
	return uint64(n)
}

// text reads a string.
func (r *reader) text() string { return string(r.word()) }

// word reads a string. It may be a part of the input.
func (r *reader) word() []byte {
	if r.value() != '"' {
		r.expected("a string")
		return nil
	}
	r.at++
	start := r.at
	for r.at < len(r.input) && plain[r.input[r.at]] {
		r.at++
	}
	if r.at < len(r.input) && r.input[r.at] == '"' {
		r.at++
		return r.input[start : r.at-1]
	}
	return r.unusual(start)
}

// unusual reads on in a string that began at start and that has come upon more than plain bytes.
func (r *reader) unusual(start int) []byte {
	text := slices.Clone(r.input[start:r.at])
	for r.at < len(r.input) {
		switch c := r.input[r.at]; {
		case c == '"':
			r.at++
			return text
		case c == '\\':
			r.at++
			text = r.escape(text)
		case c < ' ':
			r.expected("a control character to be escaped")
		case c < utf8.RuneSelf:
			text = append(text, c)
			r.at++
		default:
			_, size := utf8.DecodeRune(r.input[r.at:])
			if size == 1 {
				r.expected("UTF-8")
				return nil
			}
			text = append(text, r.input[r.at:r.at+size]...)
			r.at += size
		}
	}
	r.expected("the end of a string")
	return nil
}

// escape reads what follows a backslash.
func (r *reader) escape(text []byte) []byte {
	var c byte
	if r.at < len(r.input) {
		c = r.input[r.at]
		r.at++
	}
	switch c {
	case '"', '\\', '/':
		return append(text, c)
	case 'b':
		return append(text, '\b')
	case 'f':
		return append(text, '\f')
	case 'n':
		return append(text, '\n')
	case 'r':
		return append(text, '\r')
	case 't':
		return append(text, '\t')
	case 'u':
		return r.unicode(text)
	}
	r.expected("an escape before what is")
	return text
}

// unicode reads what follows \u: a character, the first half of one outside the basic plane, or a single byte.
func (r *reader) unicode(text []byte) []byte {
	const byteMin, byteMax = surrogateOfByte + utf8.RuneSelf, surrogateOfByte + 0xff
	unit := r.hex4()
	switch {
	case unit < 0xd800 || unit > 0xdfff:
		return utf8.AppendRune(text, unit)
	case unit >= byteMin && unit <= byteMax:
		return append(text, byte(unit-surrogateOfByte))
	case unit < 0xdc00 && r.literal(`\u`):
		if low := r.hex4(); low >= 0xdc00 && low <= 0xdfff {
			return utf8.AppendRune(text, 0x10000+(unit-0xd800)<<10+(low-0xdc00))
		}
	}
	r.expected("a surrogate that has its other half, or stands for a byte, before what is")
	return text
}

// surrogateOfByte plus a byte from 0x80 is the lone surrogate that stands for the byte, as in Python's surrogateescape.
const surrogateOfByte = 0xdc00

func (r *reader) hex4() (unit rune) {
	for range 4 {
		var c byte
		if r.at < len(r.input) {
			c = r.input[r.at]
		}
		digit, ok := hexDigit(c)
		if !ok {
			r.expected("four hex digits")
			return 0
		}
		unit = unit<<4 | rune(digit)
		r.at++
	}
	return unit
}

func hexDigit(c byte) (digit byte, ok bool) {
	switch {
	case '0' <= c && c <= '9':
		return c - '0', true
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10, true
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}
