// Package host is what the runtime takes from outside itself: time,
// randomness, files, and the moments at which something else may happen.
//
// Code that takes all four from a [Host] can be run again by seed. That asks
// three things of it. Every I/O, lock and wait passes [Host.Point] first, so
// that a driver can park all goroutines and release exactly one. No
// sync.Mutex is held across a wait; a [Lock] is. And no select is left to
// decide between two ready cases by luck.
package host
