package main

import (
	"database/sql"
	"fmt"
	"os"
	"strings"

	_ "modernc.org/sqlite"
)

// sqliteForTests is `sqlite FILE SQL` for scripts: somebody else who uses the
// database, and a look at what is there.
func sqliteForTests() {
	if err := sqliteRun(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func sqliteRun(path, text string) error {
	db, err := sql.Open("sqlite", path)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	rows, err := db.Query(text)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	names, err := rows.Columns()
	if err != nil {
		return err
	}
	for rows.Next() {
		row, into := make([]any, len(names)), make([]any, len(names))
		for i := range row {
			into[i] = &row[i]
		}
		if err := rows.Scan(into...); err != nil {
			return err
		}
		fmt.Println(strings.TrimSuffix(fmt.Sprintln(row...), "\n"))
	}
	return rows.Err()
}
