package postgres_test

import (
	"fmt"

	"github.com/remit-dev/remit/ctxperm/database"
	"github.com/remit-dev/remit/ctxperm/database/postgres"
)

// The driver connects only when a call needs it.
func Example() {
	db, err := database.New([]database.Kind{postgres.Kind()}, map[string]string{"orders": "postgres://agent@db.example.com/orders?sslmode=verify-full"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(db.Names(), db.Close())
	// Output: [orders] <nil>
}
