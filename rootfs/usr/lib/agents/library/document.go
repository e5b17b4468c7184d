package main

import (
	"errors"
	"time"
)

// Document is what the library knows about a text, its words apart.
type Document struct {
	// ID is the first 16 hexadecimal digits of the text's SHA-256, so that a text sent twice is one document.
	ID   string `json:"id"`
	Name string `json:"name"`
	// Size is the length of the text in bytes.
	Size  int       `json:"size"`
	Added time.Time `json:"added"`
	// Attempts counts how often a worker was given it.
	Attempts int `json:"attempts"`
	// Failure is why it was set aside, if it was.
	Failure string `json:"failure,omitempty"`
}

// Summary is what a worker made of a document.
type Summary struct {
	// Summary holds the sentences that say most, in the order of the text.
	Summary []string `json:"summary"`
	// Keywords are the words that set the text apart, the most telling first.
	Keywords []string `json:"keywords"`
	// Index gives each word worth searching for its weight.
	Index     map[string]float64 `json:"index"`
	Words     int                `json:"words"`
	Sentences int                `json:"sentences"`
	// Worker and Finished are the library's own note of who did it, and when.
	Worker   string    `json:"worker"`
	Finished time.Time `json:"finished"`
}

// State is where a document stands.
type State string

// The states: waiting for a worker, with a worker, summarized, set aside.
const (
	Queued State = "queued"
	Leased State = "leased"
	Done   State = "done"
	Failed State = "failed"
)

// Work is one document in the hands of one worker.
type Work struct {
	ID    string `json:"id"`
	Name  string `json:"name"`
	Text  string `json:"text"`
	Lease string `json:"lease"`
	// Seconds is how long the lease lasts unless it is renewed.
	Seconds float64 `json:"seconds"`
	// Attempt is 1 for a document that nobody has begun before.
	Attempt int `json:"attempt"`
}

// What a caller can do something about.
var (
	ErrUnknown = errors.New("no such document")
	ErrStale   = errors.New("the lease is over; the document is no longer this worker's")
	ErrFull    = errors.New("the library is full; delete documents first")
)
