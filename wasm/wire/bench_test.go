package wire_test

import (
	"fmt"
	"testing"

	"github.com/libredlock/libredlock/wasm/wire"
)

// BenchmarkPair acquires and releases a free lock on one node, in four steps.
func BenchmarkPair(b *testing.B) {
	var s wire.Session
	step(b, &s, `[0,[`+open+`]]`)
	var input []byte
	op, now := 0, 0
	feed := func(format string, args ...any) {
		now += 100
		input = fmt.Appendf(append(input[:0], '['), "%d,[", now)
		input = append(fmt.Appendf(input, format, args...), "]]"...)
		if _, _, err := s.Step(input); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		op += 2
		feed(`["acquire",%d,"mutex","orders:42",0,0,2500000,null,null,null,null,0,"","%032x",1700000000000000]`, op-1, op)
		feed(`["answer",%d,[1,%d]]`, op-1, now)
		feed(`["release",%d,%d]`, op, op-1)
		feed(`["answer",%d,[1]]`, op)
	}
}
