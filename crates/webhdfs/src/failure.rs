//! What a request fails with: Hadoop's exceptions as JSON, and the status code of each.
//!
//! Source: Hadoop 3.5.0 `web.resources.ExceptionHandler`, `JsonUtil#toJsonString(Exception)`.

use cairn_client::ClientError;
use cairn_net::http::Response;
use cairn_wire::RemoteException;
use cairn_wire::exception::class;
use serde_json::json;

/// Media type of what is JSON.
pub(crate) const JSON: &str = "application/json";

/// A request that is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{class}: {message}")]
pub(crate) struct Failure {
    /// Full name of the Java class.
    class: String,
    message: String,
}

impl Failure {
    pub(crate) fn new(class: &str, message: impl Into<String>) -> Failure {
        Failure { class: class.to_string(), message: message.into() }
    }

    /// Whether it is an exception of that class.
    pub(crate) fn is(&self, class: &str) -> bool {
        self.class == class
    }

    pub(crate) fn argument(message: impl Into<String>) -> Failure {
        Failure::new(class::ILLEGAL_ARGUMENT, message)
    }

    /// A parameter of the query that is wrong. Source: Jersey's `ParamException`, as Hadoop tells it.
    pub(crate) fn param(name: &str, cause: impl std::fmt::Display) -> Failure {
        Failure::argument(format!(
            "Invalid value for webhdfs parameter \"{name}\": {}: {cause}",
            class::ILLEGAL_ARGUMENT
        ))
    }

    pub(crate) fn io(message: impl Into<String>) -> Failure {
        Failure::new(class::IO, message)
    }

    pub(crate) fn not_found(message: impl Into<String>) -> Failure {
        Failure::new(class::FILE_NOT_FOUND, message)
    }

    /// As JSON, with the status of its class.
    pub(crate) fn response(&self) -> Response {
        let name = self.class.rsplit(['.', '$']).next().unwrap_or_default();
        let told = json!({"RemoteException": {
            "exception": name,
            "javaClassName": self.class,
            "message": self.message,
        }});
        Response::new(status(&self.class), JSON, told.to_string())
    }
}

fn status(name: &str) -> u16 {
    match name {
        class::FILE_NOT_FOUND => 404,
        class::UNSUPPORTED_OPERATION
        | class::ILLEGAL_ARGUMENT
        | class::HADOOP_ILLEGAL_ARGUMENT
        | class::INVALID_PATH => 400,
        // All others of this package are no `IOException`.
        name if name.starts_with("java.lang.") => 500,
        _ => 403,
    }
}

impl From<RemoteException> for Failure {
    fn from(exception: RemoteException) -> Failure {
        // Hadoop's servers append a stack trace.
        let message = exception.message.split("\n\tat ").next().unwrap_or_default();
        Failure::new(&exception.class, message)
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Failure {
        match error {
            ClientError::Remote { class, message } => Failure { class, message },
            ClientError::NotFound { path } => {
                Failure::not_found(format!("File does not exist: {path}"))
            }
            ClientError::Argument(message) => Failure::argument(message),
            // Another try may find one.
            error @ ClientError::NameNode { .. } => {
                Failure::new(class::RETRIABLE, error.to_string())
            }
            error => Failure::io(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exceptions_have_hadoops_status_and_shape() {
        for (class, status) in [
            (class::FILE_NOT_FOUND, 404),
            (class::ACCESS_CONTROL, 403),
            (class::SAFE_MODE, 403),
            (class::RETRIABLE, 403),
            (class::STANDBY, 403),
            (class::PATH_NOT_FOUND, 403),
            (class::ILLEGAL_ARGUMENT, 400),
            (class::INVALID_PATH, 400),
            (class::UNSUPPORTED_OPERATION, 400),
            (class::NULL_POINTER, 500),
        ] {
            assert_eq!(Failure::new(class, "m").response().status, status, "{class}");
        }
        let body = Failure::new(class::INVALID_TOKEN, "a \"b\"").response().body;
        assert_eq!(
            String::from_utf8(body).unwrap(),
            r#"{"RemoteException":{"exception":"InvalidToken","javaClassName":"org.apache.hadoop.security.token.SecretManager$InvalidToken","message":"a \"b\""}}"#
        );
    }

    #[test]
    fn traces_of_java_are_left_out() {
        let exception = RemoteException::io("one\ntwo\n\tat x.Y.z(Y.java:1)");
        assert_eq!(Failure::from(exception), Failure::io("one\ntwo"));
    }
}
