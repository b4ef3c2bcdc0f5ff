package postgres

import "context"

// Token is the token of the session: how often the opening connected. Nothing
// may append meanwhile.
func (j *Journal) Token() (n int64) {
	_ = j.pool.QueryRow(context.Background(), "SELECT token FROM owners WHERE id = $1", j.id).Scan(&n)
	return n
}

// Unsynced is the number of flushes that would be sent again. Nothing may append
// meanwhile.
func (j *Journal) Unsynced() int { return len(j.unsynced) }
