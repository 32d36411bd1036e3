package script

import "math/bits"

// sha1 is SHA-1 (FIPS 180-4), by which Redis names a script; nothing here rests on the strength that it lacks. crypto/sha1
// brings in os and much of crypto, which would make the plugin an eighth larger.
func sha1(text string) [20]byte {
	padded := append([]byte(text), 0x80)
	for len(padded)%64 != 56 {
		padded = append(padded, 0)
	}
	for shift := 56; shift >= 0; shift -= 8 {
		padded = append(padded, byte(uint64(len(text))*8>>shift))
	}

	state := [5]uint32{0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0}
	for ; len(padded) > 0; padded = padded[64:] {
		mix(&state, padded[:64])
	}
	var digest [20]byte
	for i, word := range state {
		for j := range 4 {
			digest[4*i+j] = byte(word >> (24 - 8*j))
		}
	}
	return digest
}

// mix takes one block of 64 bytes into the state.
func mix(state *[5]uint32, block []byte) {
	var w [80]uint32
	for i := range 16 {
		b := block[4*i : 4*i+4]
		w[i] = uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
	}
	for i := 16; i < 80; i++ {
		w[i] = bits.RotateLeft32(w[i-3]^w[i-8]^w[i-14]^w[i-16], 1)
	}
	a, b, c, d, e := state[0], state[1], state[2], state[3], state[4]
	for i, word := range w {
		var f, k uint32
		switch i / 20 {
		case 0:
			f, k = b&c|^b&d, 0x5a827999
		case 1:
			f, k = b^c^d, 0x6ed9eba1
		case 2:
			f, k = b&c|b&d|c&d, 0x8f1bbcdc
		case 3:
			f, k = b^c^d, 0xca62c1d6
		}
		a, b, c, d, e = bits.RotateLeft32(a, 5)+f+e+k+word, a, bits.RotateLeft32(b, 30), c, d
	}
	for i, word := range [5]uint32{a, b, c, d, e} {
		state[i] += word
	}
}
