// Package host supplies the runtime's external inputs: time, randomness, files,
// and scheduling points.
//
// Code that takes all four from a [Host] can be repeated from a seed, under
// three conditions. Every I/O, lock and wait passes [Host.Point] first, so that
// a driver can park all goroutines and release exactly one. No sync.Mutex is
// held across a wait; a [Lock] is. And no select chooses between two ready
// cases at random.
package host
