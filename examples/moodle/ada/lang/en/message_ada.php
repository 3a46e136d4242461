<?php
// The words of the plugin.

defined('MOODLE_INTERNAL') || die();

$string['pluginname'] = 'Ada (Telegram, VK, MAX, SMS)';
$string['url'] = 'Address of Ada';
$string['url_help'] = 'Such as https://ada.example';
$string['key'] = 'Key';
$string['key_help'] = 'A key with the scope send: ./ada key create moodle --scope send';
$string['sender'] = 'Sender';
$string['sender_help'] = 'Under this id Ada lists the messages of Moodle.';
$string['source'] = 'Source of people';
$string['source_help'] = 'The source in Ada whose ids are the ID numbers of users here, such as 1c: a user with the ID number 00042 is 1c:00042.';
$string['privacy:metadata'] = 'Ada gets the text of a message and the ID number of its recipient.';
