// Package console has the verb console: pages in the browser of a person.
package console
