package wire

import (
	"errors"
	"time"
)

// Bounds on the messages of a server.
const (
	maxMessage = 32 << 20 // bytes of one message
	maxIdle    = 10_000   // consecutive messages within a minute that respond to nothing
)

// Bounds on the log messages of one call that its client has not received. The
// gateway drops further ones.
const (
	maxQueuedLogs     = 1000
	maxQueuedLogBytes = 8 << 20
)

// mostLost bounds the abandoned calls that never got a response.
const mostLost = 10_000

// PeerTimeout bounds the wait for a peer that must not block the end of a call.
const PeerTimeout = 2 * time.Second

var (
	errFlood = errors.New("the server sent too many messages that answer nothing, and was cut off")
	errLong  = errors.New("the server sent a message that is too long")
)

// ErrNotSent is the error of a call of which the server has read nothing.
var ErrNotSent = errors.New("the server does not read what it is sent, and the call was not sent")

// idleMessageCounter counts consecutive messages that respond to nothing.
type idleMessageCounter struct {
	n     int
	since time.Time
}

func (i *idleMessageCounter) more(now time.Time) error {
	if now.Sub(i.since) > time.Minute {
		i.since, i.n = now, 0
	}
	if i.n++; i.n > maxIdle {
		return errFlood
	}
	return nil
}
