package cli

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestParseSince(t *testing.T) {
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.Local)
	for text, want := range map[string]time.Time{
		"2h": now.Add(-2 * time.Hour), "3d": now.Add(-72 * time.Hour), "0h": now,
		"2026-01-31":           time.Date(2026, 1, 31, 0, 0, 0, 0, time.Local),
		"2026-01-31T15:04":     time.Date(2026, 1, 31, 15, 4, 0, 0, time.Local),
		"2026-01-31 15:04:05":  time.Date(2026, 1, 31, 15, 4, 5, 0, time.Local),
		"2026-01-31T15:04:05Z": time.Date(2026, 1, 31, 15, 4, 5, 0, time.UTC),
	} {
		at, err := ParseSince(text, now)
		require.NoError(t, err, text)
		require.True(t, want.Equal(at), text)
	}
	for _, text := range []string{"", "x", "-2h", "31.1.2026"} {
		_, err := ParseSince(text, now)
		require.Error(t, err, text)
	}
}
