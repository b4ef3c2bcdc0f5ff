//go:build !linux

package lineage

// Own returns ErrUnknown.
func Own() (Chain, error) { return Chain{}, ErrUnknown }
