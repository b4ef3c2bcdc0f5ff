package database_test

import (
	"context"
	"fmt"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/ctxperm/database"
)

// A tool receives its ToolContext and passes it to the handle. When the call is
// finished, both statements commit together, or neither does.
func Example() {
	move := func(ctx context.Context, tc ctxperm.ToolContext) error {
		db, err := database.Open(ctx, tc, "main")
		if err != nil {
			return err
		}
		if _, err := db.Execute(ctx, database.Statement{SQL: "UPDATE accounts SET cents = cents - ? WHERE id = ?", Args: []any{int64(500), int64(1)}}, database.Page{}); err != nil {
			return err
		}
		_, err = db.Execute(ctx, database.Statement{SQL: "UPDATE accounts SET cents = cents + ? WHERE id = ?", Args: []any{int64(500), int64(2)}}, database.Page{})
		return err
	}
	// Without a call there is no authority.
	fmt.Println(move(context.Background(), ctxperm.ToolContext{}))
	// Output: open database: the call has ended; its context and permits reach nothing any more
}
