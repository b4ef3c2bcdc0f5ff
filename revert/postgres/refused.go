package postgres

import (
	"errors"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// IsRefused reports whether an opening failed because of what its location
// names: there is no such database or role, the password is wrong, the server is
// too old, or the location has another form.
func IsRefused(err error) bool {
	if refused, ok := errors.AsType[*pgconn.PgError](err); ok {
		return slices.Contains([]string{"3D000", "28000", "28P01"}, refused.Code)
	}
	_, parse := errors.AsType[*pgconn.ParseConfigError](err)
	return parse || err != nil && strings.Contains(err.Error(), "PostgreSQL 15 or newer is needed")
}
