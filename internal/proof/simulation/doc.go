// Package simulation holds the seeded simulation, as a test: several processes with
// agents, somebody who edits their files from outside, services that lose, delay and
// reorder requests, deaths, stops, power cuts, full disks, failed syncs, timeouts and
// clocks that jump, all on one simulated disk and one simulated journal.
//
// Everything that happens follows from a seed. An actor is a goroutine that runs until its
// next scheduling point and parks there; once all have parked, a scheduler of the
// simulation's own picks, by seed, who goes on, or what happens to the world in between. So
// the order in which Go runs goroutines plays no part, and a seed is the same run each
// time, which is checked.
//
// The line of a call, claims, recovery, undo, redo, held calls, the state of tools and the handle for files are
// the real ones. What happened is judged by package history.
//
// There is nothing here to import.
package simulation
