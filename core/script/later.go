//go:build !wasm

package script

// The kinds that the machine does not have yet: redlock.wasm goes without.
func init() { All = append(append(All, Reentrant.All()...), RWLock.All()...) }
