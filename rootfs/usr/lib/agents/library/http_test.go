package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func serve(t *testing.T) (*Library, string) {
	library := open(t, t.TempDir(), roomy)
	server := httptest.NewServer(newAPI(library))
	t.Cleanup(server.Close)
	return library, server.URL
}

// call gives the status, the body, and fails the test only if there is no answer at all.
func call(t *testing.T, method, url, body string) (int, string) {
	t.Helper()
	request, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(data)
}

func TestADocumentGoesAllTheWay(t *testing.T) {
	_, url := serve(t)
	status, body := call(t, "POST", url+"/documents?name=tale.txt", "Once upon a time.")
	var document Document
	if err := json.Unmarshal([]byte(body), &document); err != nil || status != 201 || document.Name != "tale.txt" {
		t.Fatalf("add: %d %s %v", status, body, err)
	}
	path := url + "/documents/" + document.ID
	if status, body = call(t, "GET", path+"/summary", ""); status != 202 || !strings.Contains(body, `"queued"`) {
		t.Errorf("too early: %d %s", status, body)
	}
	status, body = call(t, "POST", url+"/work/lease?worker=w&wait=10s", "")
	var work Work
	if err := json.Unmarshal([]byte(body), &work); err != nil || status != 200 || work.Text != "Once upon a time." {
		t.Fatalf("lease: %d %s %v", status, body, err)
	}
	lease := `{"lease": "` + work.Lease + `"`
	if status, body = call(t, "POST", url+"/work/"+work.ID+"/renew", lease+"}"); status != 204 {
		t.Errorf("renew: %d %s", status, body)
	}
	result := lease + `, "summary": ["Once."], "keywords": ["once"], "index": {"once": 1}, "words": 4, "sentences": 1}`
	if status, body = call(t, "POST", url+"/work/"+work.ID+"/result", result); status != 204 {
		t.Errorf("result: %d %s", status, body)
	}
	if status, body = call(t, "POST", url+"/work/"+work.ID+"/result", result); status != 409 {
		t.Errorf("result again: %d %s", status, body)
	}
	if status, body = call(t, "GET", path+"/summary?wait=10", ""); status != 200 || !strings.Contains(body, "Once.") {
		t.Errorf("summary: %d %s", status, body)
	}
	if status, body = call(t, "GET", url+"/search?q=once", ""); status != 200 || !strings.Contains(body, document.ID) {
		t.Errorf("search: %d %s", status, body)
	}
	if status, body = call(t, "GET", path+"/text", ""); status != 200 || body != "Once upon a time." {
		t.Errorf("text: %d %s", status, body)
	}
	if status, body = call(t, "GET", url+"/healthz", ""); status != 200 || !strings.Contains(body, `"done": 1`) {
		t.Errorf("healthz: %d %s", status, body)
	}
	if status, _ = call(t, "DELETE", path, ""); status != 204 {
		t.Errorf("delete: %d", status)
	}
	if status, _ = call(t, "GET", path, ""); status != 404 {
		t.Errorf("after delete: %d", status)
	}
}

func TestWhatCannotBeTakenIsRefusedWithTheReason(t *testing.T) {
	_, url := serve(t)
	for name, row := range map[string]struct {
		method, path, body string
		status             int
		reason             string
	}{
		"empty":          {"POST", "/documents", " \n", 400, "empty"},
		"not text":       {"POST", "/documents", "\xff\xfe", 415, "UTF-8"},
		"too large":      {"POST", "/documents", strings.Repeat("x", maxText+1), 413, "too large"},
		"no such id":     {"GET", "/documents/nope", "", 404, "no such document"},
		"no such path":   {"GET", "/nope", "", 404, "no GET /nope here"},
		"wrong method":   {"PUT", "/documents", "", 404, "no PUT /documents here"},
		"path climbing":  {"GET", "/documents/..%2f..%2fetc%2fpasswd/text", "", 404, ""},
		"nameless lease": {"POST", "/work/lease", "", 400, "?worker=NAME"},
		"bad wait":       {"POST", "/work/lease?worker=w&wait=soon", "", 400, "no span"},
		"negative wait":  {"POST", "/work/lease?worker=w&wait=-5s", "", 400, "no span"},
		"no work":        {"POST", "/work/lease?worker=w", "", 204, ""},
		"no json":        {"POST", "/work/x/result", "{", 400, "not what is expected"},
		"endless index":  {"POST", "/work/x/result", `{"index": {` + manyTerms() + `}}`, 400, "at most 500 words"},
		"unknown result": {"POST", "/work/x/result", "{}", 404, "no such document"},
	} {
		status, body := call(t, row.method, url+row.path, row.body)
		if status != row.status || !strings.Contains(body, row.reason) {
			t.Errorf("%s: got %d %s", name, status, body)
		}
	}
}

// manyTerms is the inside of an index that is too large.
func manyTerms() string {
	var terms []string
	for i := 0; i <= maxTerms; i++ {
		terms = append(terms, fmt.Sprintf(`"w%d": 1`, i))
	}
	return strings.Join(terms, ",")
}

func TestAFormGivesTextAndName(t *testing.T) {
	library, url := serve(t)
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	part, err := form.CreateFormFile("file", "dir/notes\x07.txt")
	if err != nil {
		t.Fatal(err)
	}
	part.Write([]byte("Some notes."))
	form.Close()
	response, err := http.Post(url+"/documents", form.FormDataContentType(), &body)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	list := library.List()
	if response.StatusCode != 201 || len(list) != 1 || list[0].Name != "notes?.txt" || list[0].Size != 11 {
		t.Errorf("got %d, %+v", response.StatusCode, list)
	}
}

func TestAWaitingWorkerGetsWhatComesIn(t *testing.T) {
	_, url := serve(t)
	answers := make(chan string, 1)
	go func() {
		response, err := http.Post(url+"/work/lease?worker=w&wait=30s", "", nil)
		if err != nil {
			answers <- err.Error()
			return
		}
		defer response.Body.Close()
		body, _ := io.ReadAll(response.Body)
		answers <- string(body)
	}()
	call(t, "POST", url+"/documents", "news")
	if body := <-answers; !strings.Contains(body, `"text": "news"`) {
		t.Errorf("got %s", body)
	}
}

func TestHelpNamesTheAddressItWasAskedAt(t *testing.T) {
	_, url := serve(t)
	if status, body := call(t, "GET", url+"/", ""); status != 200 || !strings.Contains(body, url+"/documents") {
		t.Errorf("got %d %s", status, body)
	}
}
