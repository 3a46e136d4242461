<?php
// Слова плагина.

defined('MOODLE_INTERNAL') || die();

$string['pluginname'] = 'Ada (Telegram, VK, MAX, SMS)';
$string['url'] = 'Адрес Ada';
$string['url_help'] = 'Например, https://ada.example';
$string['key'] = 'Ключ';
$string['key_help'] = 'Ключ с правом send: ./ada key create moodle --scope send';
$string['sender'] = 'Отправитель';
$string['sender_help'] = 'Под этим именем Ada перечисляет сообщения Moodle.';
$string['source'] = 'Источник людей';
$string['source_help'] = 'Источник в Ada, номера которого — «Индивидуальный номер» пользователей здесь, например 1c: пользователь с номером 00042 — это 1c:00042.';
$string['privacy:metadata'] = 'Ada получает текст сообщения и индивидуальный номер получателя.';
