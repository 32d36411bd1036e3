package script

import _ "embed"

var (
	//go:embed semaphore.lua
	semaphore string // what the scripts of the semaphore have in common
	//go:embed semaphore_acquire.lua
	semaphoreAcquire string
	//go:embed semaphore_beat.lua
	semaphoreBeat string
	//go:embed semaphore_raise.lua
	semaphoreRaise string
	//go:embed semaphore_renew.lua
	semaphoreRenew string
	//go:embed semaphore_regrant.lua
	semaphoreRegrant string
	//go:embed semaphore_release.lua
	semaphoreRelease string
	//go:embed semaphore_undo.lua
	semaphoreUndo string
	//go:embed semaphore_inspect.lua
	semaphoreInspect string
	//go:embed semaphore_force.lua
	semaphoreForce string
)

// Semaphore is the semaphore's scripts.
var Semaphore = family("semaphore", holders+semaphore, verbs{
	semaphoreAcquire, semaphoreBeat, semaphoreRaise, semaphoreRenew, semaphoreRegrant, semaphoreRelease, semaphoreUndo, semaphoreInspect, semaphoreForce,
})
