package host_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/host"
	"github.com/remit-dev/remit/internal/host/hosttest"
)

func TestRealClockIsPlainUTC(t *testing.T) {
	before := time.Now()
	now := host.Real().Now()
	require.WithinDuration(t, before, now, time.Minute)
	require.Equal(t, time.UTC, now.Location())
	require.Equal(t, now.Round(0), now, "no monotonic reading")
	text, err := now.MarshalText()
	require.NoError(t, err)
	var again time.Time
	require.NoError(t, again.UnmarshalText(text))
	require.Equal(t, now, again, "what is written compares like what was read")
}

func TestRealPointIgnoresAnEndedContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, host.Real().Point(ctx, "anywhere"))
}

func TestRealRandomDiffers(t *testing.T) {
	var a, b [32]byte
	host.Real().Random(a[:])
	host.Real().Random(b[:])
	require.NotEqual(t, a, b)
}

func TestRealTimeoutCarriesItsCause(t *testing.T) {
	cause := errors.New("too slow")
	ctx, cancel := host.Real().WithTimeout(t.Context(), time.Nanosecond, cause)
	defer cancel()
	<-ctx.Done()
	require.ErrorIs(t, context.Cause(ctx), cause)
}

func TestRealRootOpens(t *testing.T) {
	r, err := host.OpenRoot(host.Real(), t.TempDir())
	require.NoError(t, err)
	require.NoError(t, r.Close())
}

func TestNewIDForm(t *testing.T) {
	h := hosttest.New(1)
	seen, letters := map[string]bool{}, map[rune]bool{}
	for range 2000 {
		id := host.NewID(h, "t_")
		require.Regexp(t, `^t_[0-9a-hjkmnp-tv-z]{12}$`, id)
		require.False(t, seen[id])
		seen[id] = true
		for _, letter := range id[2:] {
			letters[letter] = true
		}
	}
	require.Len(t, letters, 32)
}

// TestNewIDsOfOneTimeAreNeighbors: an index writes fewer pages for them.
func TestNewIDsOfOneTimeAreNeighbors(t *testing.T) {
	h := hosttest.New(1)
	first, second := host.NewID(h, "t_"), host.NewID(h, "t_")
	require.Equal(t, first[:6], second[:6])
	require.NotEqual(t, first[6:], second[6:])
	h.Advance(time.Second)
	later := host.NewID(h, "t_")
	require.NotEqual(t, first[:6], later[:6])
	h.Advance(time.Second / 64 << 20)
	require.Equal(t, later[:5], host.NewID(h, "t_")[:5], "the time begins again")
}

func Example() {
	h := host.Real()
	lock := host.NewLock(h, "counter")
	ctx, cancel := h.WithTimeout(context.Background(), time.Minute, errors.New("counter is busy"))
	defer cancel()
	if err := lock.Lock(ctx); err != nil {
		log.Fatal(err)
	}
	defer lock.Unlock()
	fmt.Println(len(host.NewID(h, "t_")))
	// Output: 14
}
