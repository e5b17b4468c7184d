//! The client against a server that follows a script, and against servers that mean harm.

use std::thread::{self, JoinHandle};

use agentd_protocol::manager::{Empty, ListUnitsReply, ListUnitsRequest, ManagerStatus};
use agentd_protocol::{MAX_ANSWER, method};

use super::*;

/// A server at the other end of a socket pair: it reads one call, then writes what it is told, then leaves.
fn server(answer: Vec<u8>) -> (Client, JoinHandle<Vec<u8>>) {
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    let serve = move || {
        let mut call = Vec::new();
        let mut byte = [0];
        while theirs.read(&mut byte).unwrap() == 1 && byte != [0] {
            call.extend(byte);
        }
        // A client that has seen enough may leave before all is written.
        drop(theirs.write_all(&answer));
        call
    };
    (Client::over(ours), thread::spawn(serve))
}

fn status(answer: &[u8]) -> Result<String, ClientError> {
    let (mut client, _server) = server(answer.to_vec());
    client.call::<method::GetStatus>(&Empty {}, Some(ANSWER)).map(|status| status.version)
}

#[test]
fn a_call_goes_out_as_varlink_and_its_answer_comes_back_typed() {
    let (mut client, server) = server(b"{\"parameters\":{\"Version\":\"1.2\"}}\0".to_vec());
    let reply = client.call::<method::GetStatus>(&Empty {}, Some(ANSWER)).unwrap();
    assert_eq!(reply.version, "1.2");
    assert_eq!(server.join().unwrap(), br#"{"method":"io.agentd.Manager.GetStatus"}"#);
}

#[test]
fn a_stream_of_answers_ends_with_the_one_that_does_not_continue() {
    let page = |id: &str, more: bool| {
        format!("{{\"parameters\":{{\"units\":[{{\"Id\":\"{id}\"}}]}},\"continues\":{more}}}\0")
    };
    let (mut client, server) = server([page("a", true), page("b", true), page("c", false)].concat().into());
    let mut seen = Vec::new();
    client
        .stream::<method::ListUnits, ClientError>(&ListUnitsRequest::default(), Some(ANSWER), |page| {
            seen.extend(page.units.into_iter().map(|unit| unit.id));
            Ok(())
        })
        .unwrap();
    assert_eq!(seen, ["a", "b", "c"]);
    let call = Call::parse(&server.join().unwrap()).unwrap();
    assert!(call.more);
}

#[test]
fn answers_to_calls_that_were_sent_together_are_fetched_in_their_order() {
    let page = |id: &str, more: bool| {
        format!("{{\"parameters\":{{\"units\":[{{\"Id\":\"{id}\"}}]}},\"continues\":{more}}}\0")
    };
    let refusal =
        "{\"error\":\"io.agentd.Manager.NoSuchUnit\",\"parameters\":{\"unit\":\"x\",\"message\":\"no\"}}\0";
    let version = "{\"parameters\":{\"Version\":\"1.2\"}}\0".to_owned();
    let answers = [page("a", true), page("b", false), refusal.to_owned(), version].concat();
    let (mut client, server) = server(answers.into());
    let list = Client::for_many::<method::ListUnits>(&ListUnitsRequest::default()).unwrap();
    let status = || method::GetStatus::call(&Empty {}).unwrap();
    client.send(&[list, status(), status()]).unwrap();
    let mut seen = Vec::new();
    let all = client.receive_all(Some(ANSWER), |page: ListUnitsReply| -> Result<(), ClientError> {
        seen.extend(page.units.into_iter().map(|unit| unit.id));
        Ok(())
    });
    all.unwrap();
    assert_eq!(seen, ["a", "b"]);
    // An error ends one call and not the others.
    let refused = client.receive::<ManagerStatus>(Some(ANSWER)).unwrap_err();
    assert!(matches!(refused, ClientError::Call(CallError::NoSuchUnit { .. })), "{refused:?}");
    assert_eq!(client.receive::<ManagerStatus>(Some(ANSWER)).unwrap().0.version, "1.2");
    assert!(Call::parse(&server.join().unwrap()).unwrap().more);
}

#[test]
fn a_server_that_means_harm_gets_an_error_and_no_more() {
    let flood = vec![b' '; MAX_ANSWER + 2];
    let bomb = [b"{\"parameters\":{\"x\":".as_slice(), &vec![b'['; 200_000], b"\0"].concat();
    for (case, answer, expected) in [
        ("closes at once", &b""[..], "closed the connection"),
        ("closes within a reply", b"{\"parameters\":", "does not speak varlink"),
        ("garbage", b"HTTP/1.1 400 Bad Request\r\n\r\n\0", "does not speak varlink"),
        ("a list", b"[]\0", "does not speak varlink"),
        ("an endless reply", &flood, "does not speak varlink"),
        ("a bomb of brackets", &bomb, "does not speak varlink"),
        ("another type", b"{\"parameters\":{\"Version\":7}}\0", "not as its interface says"),
        ("an error", b"{\"error\":\"io.agentd.Manager.Busy\",\"parameters\":{\"message\":\"x y\"}}\0", "x y"),
        ("an unknown error", b"{\"error\":\"a.b.C\",\"parameters\":{}}\0", "answered a.b.C {}"),
    ] {
        let error = status(answer).unwrap_err().to_string();
        assert!(error.contains(expected), "{case}: {error}");
    }
}

#[test]
fn a_server_that_says_nothing_is_given_up_on_in_time() {
    let (ours, _theirs) = UnixStream::pair().unwrap();
    let mut client = Client::over(ours);
    let error = client.call::<method::GetStatus>(&Empty {}, Some(Duration::from_millis(50))).unwrap_err();
    assert!(matches!(error, ClientError::TimedOut(_)), "{error}");
    assert_eq!(error.exit(), Exit::TimedOut);
}

#[test]
fn a_server_that_trickles_bytes_cannot_stretch_the_time() {
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    let trickle = thread::spawn(move || while theirs.write_all(b" ").is_ok() {});
    let mut client = Client::over(ours);
    // Whichever bound is met first, time or size, the call ends.
    let error = client.call::<method::GetStatus>(&Empty {}, Some(Duration::from_millis(200))).unwrap_err();
    assert!(matches!(error, ClientError::TimedOut(_) | ClientError::Frame(_)), "{error}");
    drop(client);
    trickle.join().unwrap();
}

#[test]
fn a_manager_that_is_not_there_is_told_with_its_path_and_what_to_do() {
    let error = Client::connect(Path::new("/nonexistent/control.sock")).unwrap_err();
    assert_eq!(error.exit(), Exit::Unreachable);
    assert_eq!(
        error.to_string(),
        "cannot reach the manager at /nonexistent/control.sock: No such file or directory (os error 2); \
         is agentd running? (--user and --runtime-dir DIR choose another manager)"
    );
}
