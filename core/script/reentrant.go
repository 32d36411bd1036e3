//go:build !wasm

package script

import _ "embed"

var (
	//go:embed reentrant.lua
	reentrant string // what its scripts have in common
	//go:embed reentrant_acquire.lua
	reentrantAcquire string
	//go:embed reentrant_beat.lua
	reentrantBeat string
	//go:embed reentrant_raise.lua
	reentrantRaise string
	//go:embed reentrant_renew.lua
	reentrantRenew string
	//go:embed reentrant_regrant.lua
	reentrantRegrant string
	//go:embed reentrant_release.lua
	reentrantRelease string
	//go:embed reentrant_undo.lua
	reentrantUndo string
	//go:embed reentrant_inspect.lua
	reentrantInspect string
	//go:embed reentrant_force.lua
	reentrantForce string
)

// Reentrant is the reentrant lock's scripts.
var Reentrant = family("reentrant", reentrant, verbs{
	reentrantAcquire, reentrantBeat, reentrantRaise, reentrantRenew, reentrantRegrant, reentrantRelease, reentrantUndo, reentrantInspect, reentrantForce,
})
