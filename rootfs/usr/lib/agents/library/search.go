package main

import (
	"sort"
	"strings"
	"unicode"
)

// Hit is one document that a search found.
type Hit struct {
	ID    string  `json:"id"`
	Name  string  `json:"name"`
	Score float64 `json:"score"`
	// Headline is the first sentence of its summary.
	Headline string `json:"headline"`
}

// leastPrefix is the length from which a word also finds the longer words that begin with it.
const leastPrefix = 4

// Search finds the summarized documents that have every word, the best first.
func (l *Library) Search(query string, most int) []Hit {
	words := strings.FieldsFunc(strings.ToLower(query), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
	hits := []Hit{}
	l.mutex.Lock()
	for _, one := range l.books {
		if one.summary == nil || len(words) == 0 {
			continue
		}
		if score := score(one.summary.Index, words); score > 0 {
			hit := Hit{ID: one.ID, Name: one.Name, Score: score}
			if len(one.summary.Summary) > 0 {
				hit.Headline = one.summary.Summary[0]
			}
			hits = append(hits, hit)
		}
	}
	l.mutex.Unlock()
	sort.Slice(hits, func(i, j int) bool {
		if hits[i].Score != hits[j].Score {
			return hits[i].Score > hits[j].Score
		}
		return hits[i].ID < hits[j].ID
	})
	if len(hits) > most {
		hits = hits[:most]
	}
	return hits
}

// score adds up the weights of the words; zero if one of them is not there at all.
func score(index map[string]float64, words []string) float64 {
	sum := 0.0
	for _, word := range words {
		best := index[word]
		if len(word) >= leastPrefix {
			for term, weight := range index {
				if weight > best && strings.HasPrefix(term, word) {
					best = weight
				}
			}
		}
		if best <= 0 {
			return 0
		}
		sum += best
	}
	return sum
}
