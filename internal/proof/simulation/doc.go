// Package simulation contains the seeded simulation, as a test. Several
// processes with agents and an outside editor of their files run on one
// simulated disk and one simulated journal. Services lose, delay and reorder
// requests. There are crashes, stops, power failures, full disks, failed syncs,
// timeouts and clocks that jump.
//
// Everything follows from a seed. An actor is a goroutine that runs until its
// next scheduling point and parks there. After all have parked, the
// simulation's own scheduler picks, by seed, the next one to continue, or an
// event of the world. So the order in which Go runs goroutines has no effect,
// and a seed is the same run each time, which is checked.
//
// The call pipeline, claims, recovery, revert, redo, held calls, the state of
// tools and the handle for files are the real ones. Package opcheck checks the
// history.
//
// The package exports nothing.
package simulation
