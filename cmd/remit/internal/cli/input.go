package cli

import (
	"context"
	"io"
)

// ReadInput reads an input to its end, at most limit bytes. The end of ctx ends
// it, such as an interrupt on a terminal. The read itself then goes on until the
// process ends.
func ReadInput(ctx context.Context, from io.Reader, limit int64) (text []byte, err error) {
	read := make(chan struct{})
	var got []byte
	var failed error
	go func() {
		defer close(read)
		got, failed = io.ReadAll(io.LimitReader(from, limit))
	}()
	select {
	case <-read:
		return got, failed
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
